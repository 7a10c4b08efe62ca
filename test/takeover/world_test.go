package takeover_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
)

// world is what replicas look after.
type world struct {
	t        *testing.T
	ear      *ear
	replicas []*replica
	dsn      string
	ana, bo  locksteward.Secret // requester and approver
	ending   <-chan struct{}    // no new locks

	mu       sync.Mutex
	next     map[string]string // by target and key: the token of who took a lock after its release
	broken   []string          // target and key of all that broke
	requests int
	again    int // requests that had to be made again
}

// where is one target.
type where struct {
	name string
	rdb  *redis.Client
}

// live breaks locks of a target and frees them, until the world ends; it finishes
// what it began.
func (w *world) live(ctx context.Context, at where, n int, rng *rand.Rand) {
	for i := 0; ; i++ {
		select {
		case <-w.ending:
			return
		case <-ctx.Done():
			return
		default:
		}
		key := fmt.Sprintf("lock:order:%d-%d", n, i)
		if err := at.rdb.Set(ctx, key, fmt.Sprintf("3f2a77d0-%04d-%04d-9b1c-6f0a2c4e8d11", n, i), 0).Err(); err != nil {
			w.t.Error(err)
			return
		}
		id := at.name + " " + key
		w.mu.Lock()
		w.broken = append(w.broken, id)
		w.mu.Unlock()
		if !w.await(ctx, id, "firing") {
			return
		}
		if rng.IntN(3) == 0 {
			if err := at.rdb.Del(ctx, key).Err(); err != nil {
				w.t.Error(err)
			}
		} else if !w.release(ctx, at, key, rng) {
			return
		}
		if !w.await(ctx, id, "resolved") {
			return
		}
	}
}

func (w *world) await(ctx context.Context, id, status string) bool {
	deadline := time.NewTimer(2 * within)
	defer deadline.Stop()
	for {
		ok, news := w.ear.Notified(id, status)
		if ok {
			return true
		}
		select {
		case <-news:
		case <-ctx.Done():
			return false
		case <-deadline.C:
			w.t.Errorf("lost: nobody was notified that ttl/none on %s is %s", id, status)
			target, key, _ := strings.Cut(id, " ")
			w.explain(ctx, target, key)
			return false
		}
	}
}

// anyone is a client of a replica that is well, as far as is known.
func (w *world) anyone(rng *rand.Rand, token locksteward.Secret) *apiclient.Client {
	for {
		if c := w.replicas[rng.IntN(len(w.replicas))].client(token); c != nil {
			return c
		}
		<-time.After(10 * time.Millisecond)
	}
}

// release frees a lock through anyone who answers, whatever happens to them, and lets
// the next holder take it.
func (w *world) release(ctx context.Context, at where, key string, rng *rand.Rand) bool {
	deadline := time.Now().Add(2 * within)
	for time.Now().Before(deadline) && ctx.Err() == nil {
		r, err := w.anyone(rng, w.ana).CreateRequest(ctx, api.CreateRequest{Target: at.name, Key: api.NewKey(key), Reason: "stuck"})
		if errors.Is(err, locksteward.ErrConflict) {
			// The answer to an earlier one was lost.
			r, err = w.open(ctx, at, key, rng)
		}
		if errors.Is(err, locksteward.ErrNotFound) {
			w.t.Logf("%s on %s: %v", key, at.name, err)
			break // released, and its answer lost
		}
		if err == nil {
			w.mu.Lock()
			w.requests++
			w.mu.Unlock()
			state := w.decide(ctx, r, rng, deadline)
			if state == string(locksteward.RequestReleased) || state == string(locksteward.RequestAlreadyGone) {
				break
			}
		}
		w.mu.Lock()
		w.again++
		w.mu.Unlock()
		<-time.After(50 * time.Millisecond)
	}
	token := fmt.Sprintf("next-%d", rng.Uint64())
	took, err := at.rdb.SetNX(ctx, key, token, time.Hour).Result()
	if err != nil || !took {
		w.t.Errorf("%s on %s was not released: %v", key, at.name, err)
		return false
	}
	w.mu.Lock()
	w.next[at.name+" "+key] = token
	w.mu.Unlock()
	return true
}

// open is the request that waits on a lock.
func (w *world) open(ctx context.Context, at where, key string, rng *rand.Rand) (api.Request, error) {
	list, err := w.anyone(rng, w.ana).Requests(ctx, apiclient.RequestsQuery{Target: at.name, Key: &key})
	if err != nil {
		return api.Request{}, err
	}
	for _, r := range list.Requests {
		if !locksteward.RequestState(r.State).Final() {
			return r, nil
		}
	}
	return api.Request{}, locksteward.ErrConflict
}

// decide approves a request until it has an outcome.
func (w *world) decide(ctx context.Context, r api.Request, rng *rand.Rand, deadline time.Time) string {
	for time.Now().Before(deadline) && ctx.Err() == nil {
		if got, err := w.anyone(rng, w.bo).Approve(ctx, r.ID, api.Decide{Reason: "checked", EvidenceHash: r.EvidenceHash}); err == nil {
			r = got
		} else if got, err := w.anyone(rng, w.ana).Request(ctx, r.ID); err == nil {
			r = got
		}
		if locksteward.RequestState(r.State).Final() {
			return r.State
		}
		<-time.After(50 * time.Millisecond)
	}
	return r.State
}
