package browser_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testagent"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/internal/users"
	"github.com/locksteward/locksteward/store"
)

// fleetWithin is how long an event of several replicas may take on a loaded machine.
const fleetWithin = time.Minute

// fleet are three agents on one database that share two targets, orders and stock.
type fleet struct {
	t        *testing.T
	store    *store.Store
	replicas []*testagent.Agent
	rdb      map[string]*redis.Client
	tokens   map[string]locksteward.Secret
}

// newFleet runs the replicas until each has something to do.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	browser(t) // before anything else is started for nothing
	f := &fleet{t: t, rdb: map[string]*redis.Client{}, tokens: map[string]locksteward.Secret{}}
	database, dir := testpg.Start(t), t.TempDir()
	var targets []string
	for _, name := range []string{"orders", "stock"} {
		srv := testredis.Start(t)
		f.rdb[name] = srv.Client(t)
		targets = append(targets, fmt.Sprintf("{name: %s, url: '%s', schedule: '@every 1s', pace: {idle: 50%%, busy: 50%%}, release_credentials: {}}", name, srv.URL()))
	}
	for name, roles := range people {
		secret, err := users.Add(filepath.Join(dir, "users.yaml"), name, roles)
		if err != nil {
			t.Fatal(err)
		}
		f.tokens[name] = secret
	}
	text := fmt.Sprintf("targets: [%s]\n%s\nmetrics: {listen: '127.0.0.1:0'}\nconsole: {listen: '127.0.0.1:0', users_file: '%s'}\nstore: {dsn: '%s'}\n",
		strings.Join(targets, ", "), classes, filepath.Join(dir, "users.yaml"), database.DSN())
	for _, name := range []string{"r1", "r2", "r3"} {
		r := testagent.New(t, testagent.Options{Name: name, Config: text + "cluster: {name: " + name + "}\n", Within: fleetWithin})
		r.Start()
		f.replicas = append(f.replicas, r)
	}
	var err error
	if f.store, err = store.Open(t.Context(), database.DSN()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.store.Close() })
	testredis.Eventually(t, fleetWithin, func() bool {
		busy := map[*testagent.Agent]bool{}
		for _, duty := range []string{"orders", "stock", store.SingletonDuties} {
			busy[f.holder(duty)] = true
		}
		return !busy[nil] && len(busy) == len(f.replicas)
	}, "the replicas do not share the work")
	return f
}

// holder is the replica that has the lease of a duty now, nil for none.
func (f *fleet) holder(duty string) *testagent.Agent {
	leases, err := f.store.Leases(context.WithoutCancel(f.t.Context()))
	if err != nil {
		return nil
	}
	for _, l := range leases {
		for _, r := range f.replicas {
			if l.Target == duty && l.Left > 0 && strings.HasPrefix(l.Owner, r.Name+" ") {
				return r
			}
		}
	}
	return nil
}

// but is a replica that is none of these.
func (f *fleet) but(not ...*testagent.Agent) *testagent.Agent {
next:
	for _, r := range f.replicas {
		for _, n := range not {
			if r == n {
				continue next
			}
		}
		return r
	}
	return nil
}

// set writes a lock that has no TTL.
func (f *fleet) set(target, key, value string) {
	f.t.Helper()
	if err := f.rdb[target].Set(f.t.Context(), key, value, 0).Err(); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) held(target, key string) bool {
	return f.rdb[target].Exists(f.t.Context(), key).Val() == 1
}

// as opens a browser for a person who has signed in at a replica.
func (f *fleet) as(name string, at *testagent.Agent) *tab {
	f.t.Helper()
	b := newTab(f.t, at.Where().Console)
	b.within = fleetWithin
	b.signIn(name, f.tokens[name].Reveal())
	return b
}

// at is another console in the same browser.
func (b *tab) at(r *testagent.Agent) { b.url = strings.TrimSuffix(r.Where().Console, "/") }
