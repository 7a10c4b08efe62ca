package browsertest_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/agent"
	"github.com/locksteward/locksteward/internal/testpg"
	"github.com/locksteward/locksteward/internal/testredis"
	"github.com/locksteward/locksteward/internal/users"
	"github.com/locksteward/locksteward/store"
)

// childEnv makes this test binary an agent on a configuration: replicas that are
// killed are processes.
const childEnv = "LOCKSTEWARD_BROWSERTEST_CHILD"

// child is an agent until stdin ends, because its parent wants it or has died.
func child(file string) error {
	cfg, err := config.Load(file)
	if err != nil {
		return err
	}
	log, err := zap.NewProduction()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	a, err := agent.New(ctx, log, cfg, agent.Options{})
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return a.Run(ctx)
}

// started is what an agent says when it runs.
var started = regexp.MustCompile(`"agent started".*"console":"([^"]+)"`)

// fleetWithin is how long an event of several replicas may take on a loaded machine.
const fleetWithin = time.Minute

// replica is one agent of several.
type replica struct {
	name, url string
	cmd       *exec.Cmd
	stdin     io.Closer
	done      chan struct{}

	mu  sync.Mutex
	log strings.Builder
	up  chan struct{}
}

// Write takes what the process logs.
func (r *replica) Write(raw []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := started.FindSubmatch(raw); at != nil && r.url == "" {
		r.url = string(at[1])
		close(r.up)
	}
	return r.log.Write(raw)
}

func (r *replica) said() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.String()
}

// kill ends the process at once.
func (r *replica) kill() {
	_ = r.cmd.Process.Kill()
	<-r.done
}

// fleet are three agents on one database that share two targets, orders and stock.
type fleet struct {
	t        *testing.T
	store    *store.Store
	replicas []*replica
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
		targets = append(targets, fmt.Sprintf("{name: %s, redis: '%s', schedule: '@every 1s', max_server_share: 50%%, release_credentials: {}}", name, srv.URL()))
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
		file := filepath.Join(dir, name+".yaml")
		if err := os.WriteFile(file, []byte(text+"cluster: {name: "+name+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		f.replicas = append(f.replicas, f.start(name, file))
	}
	var err error
	if f.store, err = store.Open(t.Context(), database.DSN()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.store.Close() })
	testredis.Eventually(t, fleetWithin, func() bool {
		busy := map[*replica]bool{}
		for _, duty := range []string{"orders", "stock", store.House} {
			busy[f.holder(duty)] = true
		}
		return !busy[nil] && len(busy) == len(f.replicas)
	}, "the replicas do not share the work")
	return f
}

func (f *fleet) start(name, file string) *replica {
	t := f.t
	t.Helper()
	r := &replica{name: name, cmd: exec.Command(os.Args[0], "-test.run=^$"), done: make(chan struct{}), up: make(chan struct{})}
	r.cmd.Env = append(os.Environ(), childEnv+"="+file)
	r.cmd.Stdout, r.cmd.Stderr = r, r
	stdin, err := r.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.stdin = stdin
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.done)
		_ = r.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = r.stdin.Close()
		select {
		case <-r.done:
		case <-time.After(fleetWithin):
			t.Errorf("%s does not end", name)
			r.kill()
		}
		if t.Failed() {
			t.Logf("%s:\n%s", name, r.said())
		}
	})
	select {
	case <-r.up:
	case <-r.done:
		t.Fatalf("%s did not start:\n%s", name, r.said())
	case <-time.After(fleetWithin):
		t.Fatalf("%s does not start:\n%s", name, r.said())
	}
	return r
}

// holder is the replica that has the lease of a duty now, nil for none.
func (f *fleet) holder(duty string) *replica {
	leases, err := f.store.Leases(context.WithoutCancel(f.t.Context()))
	if err != nil {
		return nil
	}
	for _, l := range leases {
		for _, r := range f.replicas {
			if l.Target == duty && l.Left > 0 && strings.HasPrefix(l.Owner, r.name+" ") {
				return r
			}
		}
	}
	return nil
}

// but is a replica that is none of these.
func (f *fleet) but(not ...*replica) *replica {
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
func (f *fleet) as(name string, at *replica) *tab {
	f.t.Helper()
	b := newTab(f.t, at.url)
	b.within = fleetWithin
	b.signIn(name, f.tokens[name].Reveal())
	return b
}

// at is another console in the same browser.
func (b *tab) at(r *replica) { b.url = strings.TrimSuffix(r.url, "/") }
