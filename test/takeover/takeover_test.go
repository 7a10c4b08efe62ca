package takeover_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/internal/users"
	"github.com/locksteward/locksteward/store"
)

const configuration = `
targets:
%s
classes:
  - {class: orders, match: ["lock:order:*"], team: checkout, release: approve, max_per_hour: 100000, many_per_minute: 100000}
release: {max_per_hour: 100000, breaker_locks: 100000}
alert:
  drain_timeout: 500ms
  first_sweep: fire
  grouping: {by: [fingerprint], wait: 0s, interval: 0s}
  receivers:
    - {name: ops, kind: webhook, url: '%s', allow_private: true, timeout: 1s}
metrics: {listen: '127.0.0.1:0'}
console: {listen: '127.0.0.1:0', users_file: '%s', rate: {per_second: 10000}}
`

// workers break and free locks of each target at the same time.
const workers = 3

func TestTakeOvers(t *testing.T) {
	server := testpg.Start(t)
	at, err := url.Parse(server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(at.Query().Get("host"), ".s.PGSQL."+at.Query().Get("port"))
	e := newEar(t)
	ending := make(chan struct{})
	w := &world{t: t, dsn: server.DSN(), ear: e, ending: ending, next: map[string]string{}}
	file := filepath.Join(t.TempDir(), "users.yaml")
	for name, to := range map[string]*locksteward.Secret{"ana": &w.ana, "bo": &w.bo} {
		role := users.RoleRequester
		if name == "bo" {
			role = users.RoleApprover
		}
		if *to, err = users.Add(file, name, []users.Role{role}); err != nil {
			t.Fatal(err)
		}
	}
	targets, places := twoServers(t)
	text := fmt.Sprintf(configuration, targets, e.url, file)
	for i := range 3 {
		w.replicas = append(w.replicas, newReplica(t, fmt.Sprintf("r%d", i+1), text, "postgres://postgres@ADDRESS/postgres?sslmode=disable", socket))
	}
	for _, r := range w.replicas {
		r.Start()
	}
	st, err := store.Open(t.Context(), server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	ctx := context.WithoutCancel(t.Context())
	settled(t, st, w.replicas, len(places)+1)

	var living sync.WaitGroup
	for i, p := range places {
		for j := range workers {
			living.Go(func() { w.live(t.Context(), p, j, rand.New(rand.NewPCG(*seed, uint64(i*workers+j)))) })
		}
	}
	took := map[string][]time.Duration{}
	rng := rand.New(rand.NewPCG(*seed, 1000))
	for i := range *faults {
		if t.Failed() {
			break
		}
		kind := []string{"killed", "frozen", "cut off"}[rng.IntN(3)]
		victim := holder(t, st, w.replicas, rng)
		<-time.After(time.Duration(rng.IntN(700)) * time.Millisecond)
		began := time.Now()
		owner := victim.owner()
		switch kind {
		case "killed":
			victim.Kill()
		case "frozen":
			victim.Freeze()
		case "cut off":
			victim.proxy.Freeze(true) // no reset: packets vanish
		}
		took[kind] = append(took[kind], w.replaced(st, owner, len(places)+1, began))
		switch kind {
		case "killed":
			victim.Start()
		case "frozen":
			victim.Thaw()
		case "cut off":
			victim.proxy.Freeze(false)
		}
		settled(t, st, w.replicas, len(places)+1)
		if (i+1)%20 == 0 {
			t.Logf("%d take-overs", i+1)
		}
	}
	close(ending)
	living.Wait()
	judge(t, took)
	for _, r := range w.replicas {
		r.End()
	}
	w.verdict(ctx, st, places)
}

// twoServers are four targets on two servers.
func twoServers(t *testing.T) (targets string, places []where) {
	t.Helper()
	for i, srv := range []*testredis.Server{testredis.Start(t), testredis.Start(t)} {
		for db := range 2 {
			name := fmt.Sprintf("t%d", 2*i+db)
			o := *srv.Options()
			o.DB = db
			rdb := redis.NewClient(&o)
			t.Cleanup(func() { _ = rdb.Close() })
			places = append(places, where{name, rdb})
			targets += fmt.Sprintf("  - {name: %s, url: 'redis://%s/%d', schedule: '@every 2s', pace: {idle: 50%%, busy: 50%%}, release_credentials: {}}\n", name, o.Addr, db)
		}
	}
	return targets, places
}

// holder is a replica that has something to do.
func holder(t *testing.T, st *store.Store, all []*replica, rng *rand.Rand) *replica {
	t.Helper()
	members, err := st.Membership(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		r := all[rng.IntN(len(all))]
		if slices.ContainsFunc(members.Leases, func(l store.Lease) bool { return strings.HasPrefix(l.Owner, r.owner()) }) {
			return r
		}
	}
	t.Fatalf("nobody works: %+v", members)
	return nil
}

// replaced waits until others have all duties, and returns how long that took. It logs
// what the database was about if that is long.
func (w *world) replaced(st *store.Store, owner string, duties int, began time.Time) time.Duration {
	w.t.Helper()
	late := 0
	testredis.Eventually(w.t, within, func() bool {
		members, err := st.Membership(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		if since := time.Since(began); since > promised-500*time.Millisecond && late < 20 {
			late++
			w.t.Logf("%s without all of its work taken: %+v\n%s", since, members, w.activity())
		}
		return len(members.Leases) == duties && !slices.ContainsFunc(members.Leases, func(l store.Lease) bool { return strings.HasPrefix(l.Owner, owner) })
	}, "nobody takes over")
	return time.Since(began)
}

// settled waits until all replicas are there and every duty is done by one of them.
// Who was lost is given nothing for a minute, unless nobody does it: so work moves with
// each fault, and is not even in between.
func settled(t *testing.T, st *store.Store, all []*replica, duties int) {
	t.Helper()
	testredis.Eventually(t, within, func() bool {
		members, err := st.Membership(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range all {
			if !slices.ContainsFunc(members.Replicas, func(there store.Replica) bool { return strings.HasPrefix(there.ID, r.owner()) }) {
				return false
			}
		}
		return len(members.Leases) == duties
	}, "a replica is not there, or a duty is nobody's")
}

// verdict judges what became of everything.
func (w *world) verdict(ctx context.Context, st *store.Store, places []where) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	lost, reversed := 0, 0
	for _, id := range w.broken {
		reported := w.ear.Of(id)
		if !slices.Contains(reported, "firing") || !slices.Contains(reported, "resolved") {
			lost++
			w.t.Errorf("lost: of %s was reported %v", id, reported)
		} else if reported[0] != "firing" {
			reversed++
			w.t.Errorf("an end before its fire: of %s was reported %v", id, reported)
		}
	}
	for _, p := range places {
		for id, token := range w.next {
			key, mine := strings.CutPrefix(id, p.name+" ")
			if !mine {
				continue
			}
			if got, err := p.rdb.Get(ctx, key).Result(); err != nil || got != token {
				w.t.Errorf("released twice: %s is %q, not its next holder's (%v)", id, got, err)
			}
		}
	}
	list, err := st.ListRequests(ctx, nil, "", -1)
	if err != nil {
		w.t.Fatal(err)
	}
	released := 0
	for _, r := range list {
		if !r.State.Final() && r.State != locksteward.RequestPending {
			w.t.Errorf("request %s is left %s", r.ID, r.State)
		}
		if r.State == locksteward.RequestReleased {
			released++
		}
		if r.State == locksteward.RequestUnknown {
			w.t.Errorf("request %s: %s", r.ID, r.Outcome)
		}
	}
	if _, err := st.Verify(ctx); err != nil {
		w.t.Error(err)
	}
	_, copies := w.ear.Count()
	w.t.Logf("%d locks broke, %d requests for %d released, %d of them asked again; lost %d, end before fire %d, copies %d",
		len(w.broken), len(list), released, w.again, lost, reversed, copies)
	if len(w.broken) == 0 || released == 0 {
		w.t.Error("nothing happened")
	}
}
