package browser_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/agent"
	"github.com/locksteward/locksteward/internal/testkit/testagent"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/internal/users"
)

// token is a lock's value that must never be seen outside Redis.
const token = "5f2b8c1e-9d1a-4b6e-8f0a-1c2d3e4f5a6b"

// stage is an agent that watches a server, and the people who use it.
type stage struct {
	t      *testing.T
	rdb    *redis.Client
	srv    *testredis.Server
	agent  *agent.Agent
	url    string
	tokens map[string]locksteward.Secret
}

const classes = `
classes:
  - {class: orders, match: ["lock:order:*"], team: checkout, release: approve, expect: 30s, runbook_url: "https://wiki.example/locks"}
  - {class: invoices, match: ["lock:invoice:*"], team: billing, release: approve, expect: 5s, dead_when: ["ttl/none"]}
`

// people are who may sign in, and as what.
var people = map[string][]users.Role{
	"ana": {users.RoleRequester},
	"bo":  {users.RoleApprover},
	"max": {users.RoleRequester, users.RoleApprover},
	"vi":  {users.RoleViewer},
	"kim": {users.RoleAdmin},
}

// newStage starts a Redis, lets prepare write to it, and runs an agent on it, which sweeps
// every second.
func newStage(t *testing.T, prepare func(s *stage)) *stage {
	t.Helper()
	return newStageSwept(t, "schedule: '@every 1s', pace: {idle: 50%, busy: 50%}, ", prepare)
}

// newStageSwept is newStage with keys of the target of its own: "" are the defaults.
func newStageSwept(t *testing.T, sweeps string, prepare func(s *stage)) *stage {
	t.Helper()
	browser(t) // before anything else is started for nothing
	s := &stage{t: t, srv: testredis.Start(t), tokens: map[string]locksteward.Secret{}}
	s.rdb = s.srv.Client(t)
	if prepare != nil {
		prepare(s)
	}
	dir := t.TempDir()
	for name, roles := range people {
		secret, err := users.Add(filepath.Join(dir, "users.yaml"), name, roles)
		if err != nil {
			t.Fatal(err)
		}
		s.tokens[name] = secret
	}
	file := filepath.Join(dir, "locksteward.yaml")
	text := fmt.Sprintf("targets: [{name: main, url: '%s', %srelease_credentials: {}}]\n%s\n"+
		"metrics: {listen: '127.0.0.1:0'}\nconsole: {listen: '127.0.0.1:0', users_file: '%s'}\nstore: {dsn: 'sqlite:%s'}\n",
		s.srv.URL(), sweeps, classes, filepath.Join(dir, "users.yaml"), filepath.Join(dir, "store.db"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.agent = testagent.Run(t, file, agent.Options{})
	s.url = s.agent.ConsoleURL()
	return s
}

// set writes a string lock.
func (s *stage) set(key, value string) {
	s.t.Helper()
	if err := s.rdb.Set(s.t.Context(), key, value, 0).Err(); err != nil {
		s.t.Fatal(err)
	}
}

// held says that a key is there.
func (s *stage) held(key string) bool { return s.rdb.Exists(s.t.Context(), key).Val() == 1 }

// as opens a browser for a person who has signed in.
func (s *stage) as(name string) *tab {
	s.t.Helper()
	b := newTab(s.t, s.url)
	b.signIn(name, s.tokens[name].Reveal())
	return b
}
