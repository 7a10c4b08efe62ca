package soak_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/testkit/testagent"
	"github.com/locksteward/locksteward/internal/users"
)

// people have broken locks released, through whichever agent answers, and see that the
// next holder's lock stays: a release that comes late or twice would take it.
type people struct {
	t        *testing.T
	rdb      *redis.ClusterClient
	ear      *ear
	agents   func() []*testagent.Agent
	ending   <-chan struct{}
	file     string
	ana, bo  locksteward.Secret // requester and approver
	patience time.Duration      // with one request, that agents may fail under

	mu       sync.Mutex
	next     map[string]string // the token of who took a lock after its release
	names    []string          // of all of which must be notified
	released int
	again    int // requests that had to be made again
}

func newPeople(t *testing.T) *people {
	t.Helper()
	p := &people{t: t, file: filepath.Join(t.TempDir(), "users.yaml"), next: map[string]string{}}
	var err error
	if p.ana, err = users.Add(p.file, "ana", []users.Role{users.RoleRequester}); err != nil {
		t.Fatal(err)
	}
	if p.bo, err = users.Add(p.file, "bo", []users.Role{users.RoleApprover}); err != nil {
		t.Fatal(err)
	}
	return p
}

// live breaks locks and has them released, until the world ends; it finishes what it
// began.
func (p *people) live(ctx context.Context, b *broken) {
	for i := 0; ; i++ {
		select {
		case <-p.ending:
			return
		case <-ctx.Done():
			return
		default:
		}
		key := fmt.Sprintf("soak:people:%d", i)
		if !b.insist(ctx, func() error {
			return p.rdb.Set(ctx, key, fmt.Sprintf("3f2a77d0-77aa-4%03x-9b1c-6f0a2c4e8d11", i%4096), 0).Err()
		}) {
			return
		}
		if !b.await(ctx, key, "firing", func() bool {
			n, err := p.rdb.Exists(ctx, key).Result()
			return err == nil && n == 0
		}) {
			if n, err := p.rdb.Exists(ctx, key).Result(); err == nil && n == 0 {
				continue // a failover took it before anybody looked
			}
		}
		p.mu.Lock()
		p.names = append(p.names, key) // the verdict says it if either is not reported
		p.mu.Unlock()
		if !p.release(ctx, key) || !b.await(ctx, key, "resolved", func() bool { return false }) {
			return
		}
	}
}

// release has a lock released and lets the next holder take it.
func (p *people) release(ctx context.Context, key string) bool {
	token := "next-" + key
	deadline := time.Now().Add(within)
	for ctx.Err() == nil && time.Now().Before(deadline) {
		state := p.request(ctx, key)
		if state == string(locksteward.RequestReleased) || state == string(locksteward.RequestAlreadyGone) {
			if took, err := p.take(ctx, key, token); err == nil && took {
				p.mu.Lock()
				p.next[key] = token
				p.released++
				p.mu.Unlock()
				return true
			}
			// Freed, but the lock is not the next holder's for certain: no replica has it yet.
		} else {
			p.mu.Lock()
			p.again++
			p.mu.Unlock()
		}
		<-time.After(200 * time.Millisecond)
	}
	p.t.Errorf("%s was not released", key)
	return false
}

// take is the next holder's acquire. It counts when the replica has it too, so that no
// failover undoes it.
func (p *people) take(ctx context.Context, key, token string) (bool, error) {
	master, err := p.rdb.MasterForKey(ctx, key)
	if err != nil {
		return false, err
	}
	conn := master.Conn()
	defer conn.Close()
	took, err := conn.SetNX(ctx, key, token, standingTTL).Result()
	if err == nil && !took {
		// The answer to an earlier try may be lost.
		var got string
		got, err = conn.Get(ctx, key).Result()
		took = got == token
	}
	if err != nil || !took {
		return false, err
	}
	n, err := conn.Wait(ctx, 1, 5*time.Second).Result()
	return n >= 1, err
}

// request asks for a release, has it approved, and returns how that ended.
func (p *people) request(ctx context.Context, key string) (state string) {
	r, err := ask(ctx, p, p.ana, func(c *apiclient.Client) (api.Request, error) {
		return c.CreateRequest(ctx, api.CreateRequest{Target: "soak", Key: api.NewKey(key), Reason: "stuck"})
	})
	switch {
	case errors.Is(err, locksteward.ErrConflict):
		// The answer to an earlier one was lost, or an agent ended under it.
		list, err := ask(ctx, p, p.ana, func(c *apiclient.Client) (api.RequestList, error) {
			return c.Requests(ctx, apiclient.RequestsQuery{Target: "soak", Key: &key})
		})
		if err != nil {
			return ""
		}
		for _, one := range list.Requests {
			if !locksteward.RequestState(one.State).Final() {
				r = one
			}
		}
	case errors.Is(err, locksteward.ErrNotFound):
		return string(locksteward.RequestAlreadyGone) // released, and its answer lost; take says whether it is so
	}
	if r.ID == "" {
		return ""
	}
	for until := time.Now().Add(p.patience); time.Now().Before(until) && ctx.Err() == nil; <-time.After(100 * time.Millisecond) {
		got, err := ask(ctx, p, p.bo, func(c *apiclient.Client) (api.Request, error) {
			return c.Approve(ctx, r.ID, api.Decide{Reason: "checked", EvidenceHash: r.EvidenceHash})
		})
		if err != nil {
			got, err = ask(ctx, p, p.ana, func(c *apiclient.Client) (api.Request, error) { return c.Request(ctx, r.ID) })
		}
		if err == nil && locksteward.RequestState(got.State).Final() {
			return got.State
		}
	}
	return ""
}

// ask asks one agent after the other until one has an answer.
func ask[R any](ctx context.Context, p *people, token locksteward.Secret, do func(*apiclient.Client) (R, error)) (R, error) {
	var out R
	err := errors.New("no agent is there")
	for _, a := range p.agents() {
		at := a.Where()
		if at.Console == "" || ctx.Err() != nil {
			continue
		}
		transport := &http.Transport{DisableKeepAlives: true}
		c, bad := apiclient.New(at.Console, token, &http.Client{Transport: transport, Timeout: 15 * time.Second})
		if bad != nil {
			p.t.Error(bad)
			return out, bad
		}
		if out, err = do(c); err == nil || errors.Is(err, locksteward.ErrConflict) || errors.Is(err, locksteward.ErrNotFound) {
			return out, err
		}
	}
	return out, err
}

// taken are the next holders' locks that are not theirs any more.
func (p *people) taken(ctx context.Context) (wrong []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, token := range p.next {
		testEventually(p.t, func() bool {
			got, err := p.rdb.Get(ctx, key).Result()
			if err != nil && !errors.Is(err, redis.Nil) {
				return false
			}
			if got != token {
				wrong = append(wrong, key)
			}
			return true
		}, "the locks of next holders can be read")
	}
	return wrong
}
