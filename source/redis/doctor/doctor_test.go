package doctor_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source"
	redissource "github.com/locksteward/locksteward/source/redis"
	"github.com/locksteward/locksteward/source/redis/acl"
	"github.com/locksteward/locksteward/source/redis/connect"
	"github.com/locksteward/locksteward/source/redis/doctor"
)

const password = "doctor-canary-1"

func users(t *testing.T, classes []class.Class) (lines []string) {
	t.Helper()
	v, err := acl.ParseVersion(testredis.Version(t).String())
	if err != nil {
		t.Skip(err)
	}
	scan, err := acl.Scanner(v, acl.Scan{Hash: acl.Hash(password)})
	if err != nil {
		t.Fatal(err)
	}
	free, err := acl.Releaser(v, acl.Free{Hash: acl.Hash(password), Classes: classes})
	if err != nil {
		t.Fatal(err)
	}
	return []string{scan.FileLine(), free.FileLine()}
}

func set(t *testing.T, classes []class.Class) *class.Set {
	t.Helper()
	s, err := class.NewSet(classes)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// of returns the check of a name; several of one name are joined.
func of(r doctor.Report, name string) (status doctor.Status, text string) {
	for _, c := range r.Checks {
		if c.Name == name {
			status, text = c.Status, text+c.Found+" -> "+c.Todo+"\n"
		}
	}
	return status, text
}

func expect(t *testing.T, r doctor.Report, name string, status doctor.Status, words ...string) {
	t.Helper()
	got, text := of(r, name)
	if got != status {
		t.Errorf("%s: %s %q, want %s", name, got, text, status)
	}
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%s: %q is not in %q", name, w, text)
		}
	}
}

var orders = []class.Class{{Name: "orders", Match: []string{"lock:order:*"}, Release: class.ReleaseApprove}}

// With the users that `locksteward acl` prints all is well, a push arrives, and the
// server has nothing to log.
func TestDoctorWithTheLeastRights(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t, testredis.WithACL(users(t, orders)...), testredis.WithConfig("appendonly yes", "maxmemory 100mb"))
	admin := srv.Client(t)
	ctx := t.Context()
	for i := range 300 {
		if err := admin.Set(ctx, fmt.Sprintf("lock:order:%d", i), "3f2b8c1e-9d1a-4b6e-8f0a-1c2d3e4f5a6b", 0).Err(); err != nil {
			t.Fatal(err)
		}
		if err := admin.Set(ctx, fmt.Sprintf("item:%d", i), "x", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	releaser := connect.Config{URL: srv.URL(), Username: "releaser", Password: password}
	r := doctor.Examine(ctx, doctor.Options{
		Target: "orders", Connect: connect.Config{URL: srv.URL(), Username: "scanner", Password: password},
		Scan: scanner.DefaultConfig(), Classes: set(t, orders), Release: &releaser, PushTest: true,
	})
	for _, name := range []string{"connection", "topology", "version", "persistence", "eviction", "replication", "rights", "least-rights", "releaser", "clock", "connections", "sweep", "store"} {
		expect(t, r, name, doctor.OK)
	}
	expect(t, r, "tracking", doctor.OK, "a push came")
	expect(t, r, "rights", doctor.OK, "dry run")
	if s, _ := of(r, "latency"); s == doctor.Fail || s == "" {
		t.Errorf("latency: %q", s)
	}
	f := r.Forecast
	if f == nil || f.Keys < 600 || f.Keys > 601 || f.Locks != 300 || f.ServerMs <= 0 || f.SweepMs < 9*f.ServerMs || f.SweepBusyMs < 99*f.ServerMs || f.ServerShare == nil || f.StoreBytesPerDay == nil {
		t.Errorf("forecast %+v", f)
	}
	if log, err := admin.Do(ctx, "acl", "log").Slice(); err != nil || len(log) != 0 {
		t.Errorf("the server refused %v, %v", log, err)
	}
	raw, err := json.Marshal(r)
	if err != nil || strings.Contains(string(raw), "canary") {
		t.Errorf("%s, %v", raw, err)
	}
	if n := admin.DBSize(ctx).Val(); n > 601 {
		t.Errorf("%d keys", n)
	}
}

// On a server before 6.2 the doctor says that it is too old for a watch and for ACLs.
func TestDoctorNamesTheServer(t *testing.T) {
	t.Parallel()
	v := testredis.Version(t)
	srv := testredis.Start(t)
	r := doctor.Examine(t.Context(), doctor.Options{Target: "x", Connect: connect.Config{URL: srv.URL()}, Scan: scanner.DefaultConfig()})
	name, _, _ := strings.Cut(v.String(), ".")
	if v.AtLeast(6, 2) {
		expect(t, r, "version", doctor.OK, name)
		expect(t, r, "tracking", doctor.OK)
		return
	}
	expect(t, r, "version", doctor.Warn, name, "sweeps alone", "update the server to 6.2")
	expect(t, r, "tracking", doctor.Warn, "sweeps alone")
}

func TestDoctorSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	testredis.Since(t, 7, 0, "a pattern for reading alone (%R~)")
	srv := testredis.Start(t, testredis.WithConfig("maxmemory 100mb", "maxmemory-policy allkeys-lru"),
		testredis.WithACL("few on >"+password+" %R~lock:order:* +@connection -client|tracking +scan +type +pttl +time +exists +get +strlen +info -@pubsub"))
	r := doctor.Examine(t.Context(), doctor.Options{
		Target: "orders", Connect: connect.Config{URL: srv.URL(), Username: "few", Password: password}, Scan: scanner.DefaultConfig(),
		Classes: set(t, append([]class.Class{{Name: "money", Match: []string{"pay:*"}}}, orders...)),
	})
	expect(t, r, "persistence", doctor.Warn, "appendonly")
	expect(t, r, "eviction", doctor.Warn, "allkeys-lru", "noeviction")
	expect(t, r, "rights", doctor.Warn, "GETRANGE", "PEXPIRETIME: expiry times", "OBJECT IDLETIME", "user few", "locksteward acl")
	expect(t, r, "least-rights", doctor.OK, "one write was tried")
	expect(t, r, "tracking", doctor.Warn, "sweeps alone")
	if r.Status != doctor.Fail {
		t.Errorf("status %s: without GETRANGE nothing can be read", r.Status)
	}
	admin := srv.Client(t)
	for i := range 2000 {
		if err := admin.Set(t.Context(), fmt.Sprintf("item:%d", i), "x", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	full := doctor.Examine(t.Context(), doctor.Options{
		Target: "x", Connect: connect.Config{URL: srv.URL(), Username: testredis.AdminUser, Password: "testredis-admin"},
		Scan: scanner.Config{Schedule: "@every 1ms"}, Redis: redissource.Config{Watch: source.WatchOff},
		Classes: set(t, []class.Class{{Name: "items", Match: []string{"item:*"}}, {Name: "misspelt", Match: []string{"itme:*"}}}),
	})
	expect(t, full, "classes", doctor.Warn, `none of the 2000 keys belongs to class "misspelt"`, "match")
	expect(t, full, "least-rights", doctor.Warn, "everything", "locksteward acl")
	expect(t, full, "rights", doctor.OK)
	expect(t, full, "sweep", doctor.Warn, "sweep less often")
	expect(t, full, "tracking", doctor.OK, "not asked for")
}

func TestDoctorOfAServerThatIsAway(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	srv.Kill()
	r := doctor.Examine(t.Context(), doctor.Options{Target: "x", Connect: connect.Config{URL: srv.URL()}})
	expect(t, r, "connection", doctor.Fail, "refused")
	if r.Status != doctor.Fail || len(r.Checks) != 1 || r.Forecast != nil {
		t.Errorf("%+v", r)
	}
	wrong := doctor.Examine(t.Context(), doctor.Options{Target: "x", Connect: connect.Config{URL: "redis://u:" + password + "@"}})
	expect(t, wrong, "connection", doctor.Fail)
	if raw, _ := json.Marshal(wrong); strings.Contains(string(raw), "canary") {
		t.Errorf("%s", raw)
	}
}

func TestDoctorOfAReplica(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	replica := testredis.StartReplica(t, srv)
	r := doctor.Examine(t.Context(), doctor.Options{Target: "x", Connect: connect.Config{URL: replica.URL()}})
	expect(t, r, "replication", doctor.Fail, "is a replica")
	r = doctor.Examine(t.Context(), doctor.Options{Target: "x", Connect: connect.Config{URL: srv.URL()}})
	expect(t, r, "replication", doctor.OK, "1 replica")
	expect(t, r, "persistence", doctor.OK, "take over")
}

func TestDoctorOfAClusterAndOfSentinels(t *testing.T) {
	t.Parallel()
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		c := testredis.StartCluster(t, testredis.WithACL(users(t, orders)...))
		releaser := connect.Config{URL: c.URL(), Username: "releaser", Password: password}
		o := doctor.Options{
			Target: "x", Connect: connect.Config{URL: c.URL(), Username: "scanner", Password: password}, Classes: set(t, orders), Release: &releaser, PushTest: true,
		}
		r := doctor.Examine(t.Context(), o)
		expect(t, r, "topology", doctor.OK, "3 masters", "all slots")
		expect(t, r, "tracking", doctor.OK, "a push came")
		for _, check := range r.Checks {
			if check.Name == "version" && len(check.Nodes) != 3 {
				t.Errorf("the same is notified of %v", check.Nodes)
			}
		}
		for _, node := range c.Nodes {
			if log, err := node.Client(t).Do(t.Context(), "acl", "log").Slice(); err != nil || len(log) != 0 {
				t.Errorf("refused %v, %v", log, err)
			}
		}
		c.Nodes[1].Kill()
		r = doctor.Examine(t.Context(), o)
		if r.Status != doctor.Fail {
			t.Errorf("a master is away: %+v", r.Checks)
		}
	})
	t.Run("sentinel", func(t *testing.T) {
		t.Parallel()
		s := testredis.StartSentinel(t)
		r := doctor.Examine(t.Context(), doctor.Options{Target: "x", Connect: connect.Config{URL: s.URL()}})
		expect(t, r, "connection", doctor.OK)
		if status, text := of(r, "topology"); status == "" || !strings.Contains(text, "Sentinel") {
			t.Errorf("topology: %s %q", status, text)
		}
	})
}
