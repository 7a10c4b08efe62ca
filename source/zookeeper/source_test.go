package zksource_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/internal/testkit/testzk"
	"github.com/locksteward/locksteward/source"
	zksource "github.com/locksteward/locksteward/source/zookeeper"
)

func TestURL(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"redis://h":                        "must begin with zookeeper://",
		"zookeeper://":                     "is no host and port",
		"zookeeper://h:0":                  "is no host and port",
		"zookeeper://h:port":               "is no host and port",
		"zookeeper://h,,g":                 "is no host and port",
		"zookeeper://u:secret@h":           "must have no password",
		"zookeeper://h?x=y":                `parameter "x" is not known`,
		"zookeeper://h?admin_port=0":       "admin_port=\"0\" is no port",
		"zookeeper://h?admin_port=8080":    "",
		"zookeeper+tls://h,g:2282/chroot":  "",
		"zookeeper://%zz@h":                "not escaped",
		"zookeeper://h/%zz":                "not escaped",
		"zookeeper://h":                    "",
		"zookeeper://h1,h2:2182,[::1]:1/a": "",
		"zookeeper://user@h/a/b/":          "",
	} {
		_, err := zksource.Open(source.Login{URL: url}, zksource.Options{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: %v, want %q", url, err, want)
		}
	}
}

// Who holds and who waits, of each recipe in each order.
func TestRecipes(t *testing.T) {
	t.Parallel()
	u, g := uuid(), guid()
	const d = "0000000001"
	for name, tt := range map[string]struct {
		nodes []string // in their order, made with flags but for those with a !
		want  []string // lock mode library waiters, after the prefix /locks/
		flags int32
	}{
		"mutex":             {[]string{"a/_c_" + u + "-lock-", "a/_c_" + uuid() + "-lock-", "a/_c_" + uuid() + "-lock-"}, []string{"a  curator 2"}, 3},
		"mixed libraries":   {[]string{"a/" + g + "__lock__", "a/_c_" + g + "-lock-"}, []string{"a  kazoo 1"}, 3},
		"without a guid":    {[]string{"a/lock-", "a/lock-"}, []string{"a  distributedlock-dotnet 1"}, 3},
		"zk-ruby":           {[]string{"a/ex", "a/ex"}, []string{"a  zk-ruby 1"}, 3},
		"zk-ruby shared":    {[]string{"a/sh", "a/ex"}, []string{"a/sh0000000000 read zk-ruby 1"}, 3},
		"recipes":           {[]string{"a/x-72057827372236800-"}, []string{"a  zookeeper-recipes 0"}, 3},
		"unknown":           {[]string{"a/n_", "a/n_"}, []string{"a  unknown 1"}, 3},
		"a writer waits":    {[]string{"a/_c_" + u + "-__READ__", "a/_c_" + u + "-__READ__", "a/_c_" + u + "-__WRIT__", "a/_c_" + u + "-__READ__"}, []string{"a/_c_" + u + "-__READ__0000000000 read curator 2", "a/_c_" + u + "-__READ__0000000001 read curator 0"}, 3},
		"readers wait":      {[]string{"a/_c_" + u + "-__WRIT__", "a/_c_" + u + "-__READ__", "a/_c_" + u + "-__READ__"}, []string{"a write curator 2"}, 3},
		"kazoo readers":     {[]string{"a/" + g + "__rlock__", "a/" + g + "__lock__"}, []string{"a/" + g + "__rlock__0000000000 read kazoo 1"}, 3},
		"a semaphore":       {[]string{"a/leases/_c_" + u + "-lease-", "a/leases/_c_" + u + "-lease-", "a/locks!"}, []string{"a/leases/_c_" + u + "-lease-0000000000  curator 0", "a/leases/_c_" + u + "-lease-0000000001  curator 0"}, 3},
		"a lease waits":     {[]string{"a/leases/_c_" + u + "-lease-", "a/leases/_c_" + u + "-lease-", "a/locks/_c_" + u + "-lock-"}, []string{"a/leases/_c_" + u + "-lease-0000000000  curator 1"}, 3},
		"kazoo semaphore":   {[]string{"a/" + g}, []string{"a/" + g + "  kazoo 0"}, 1},
		"a fixed node":      {[]string{"controller"}, []string{"controller  zookeeper-ephemeral 0"}, 1},
		"no lock":           {[]string{"a/config", "b/" + g, "c"}, nil, 0},
		"short and similar": {[]string{"a/lock", "a/123456789", "a/lock-12345678x9", "a/" + g + "x"}, nil, 0},
		"persistent":        {[]string{"a/" + g + "__lock__" + d}, []string{"a  kazoo 0"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, testzk.Shared(t), "/locks/*")
			for _, node := range tt.nodes {
				if name, ok := strings.CutSuffix(node, "!"); ok {
					w.create("/locks/"+name, "", zk.FlagPersistent)
				} else {
					w.create("/locks/"+node, "", tt.flags)
				}
			}
			sweep := w.sweep()
			var got []string
			for _, l := range sweep.Locks {
				got = append(got, fmt.Sprintf("%s %s %s %d", strings.TrimPrefix(l.Key, "/locks/"), l.Mode, l.Library, l.Waiters))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			waiters := 0
			for _, l := range sweep.Locks {
				waiters += l.Waiters
				// What is read by its name is what was swept.
				again, err := w.scanner.Table().Refresh(t.Context(), l.Key)
				if err != nil || again.TokenDigest != l.TokenDigest || again.Mode != l.Mode || again.Waiters != l.Waiters {
					t.Errorf("read again: %+v, %v", again.Observation, err)
				}
			}
			if len(sweep.Waiters) != waiters {
				t.Errorf("waiters %+v, want %d", sweep.Waiters, waiters)
			}
			if again := w.sweep(); len(again.Endings) > 0 || len(again.Locks) != len(sweep.Locks) {
				t.Errorf("swept again: %q, endings %+v", names(again.Locks), again.Endings)
			}
		})
	}
}

// Names may have any character that ZooKeeper allows, and what is no path is not there.
func TestNamesOfAnyBytes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testzk.Shared(t), "/locks/*")
	odd := []string{"/locks/a b", "/locks/ü", "/locks/%41", `/locks/a\b`, "/locks/[x]*?", "/locks/a'\";--", "/locks/..x", "/locks/鎖"}
	for _, name := range odd {
		w.create(curatorNode(name), "a b\xff\x00", zk.FlagEphemeralSequential)
	}
	slices.Sort(odd)
	sweep := w.sweep()
	if got := names(sweep.Locks); !slices.Equal(got, odd) {
		t.Errorf("swept %q, want %q", got, odd)
	}
	for _, l := range sweep.Locks {
		if l.Holder.Host != "" {
			t.Errorf("the holder of %q is %q", l.Key, l.Holder.Host)
		}
		if out, err := w.releaser().Release(t.Context(), request(l)); err != nil || out.State != locksteward.RequestReleased {
			t.Errorf("%q: %+v, %v", l.Key, out, err)
		}
	}
	for _, name := range []string{"", "no-path", "/locks/\xff", "/locks/a\x00b", "/locks//a", "/locks/.", "/locks/a/", "/", strings.Repeat("/x", 1000)} {
		batches, err := w.src.Read(t.Context(), []string{name}, false)
		if err != nil || len(batches) != 1 || batches[0].Readings[0].State != source.Absent {
			t.Errorf("%q: %+v, %v", name, batches, err)
		}
		if _, err := w.releaser().Preview(t.Context(), locksteward.Request{ID: "r", Evidence: locksteward.Evidence{Key: name}}); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// The patterns of classes name the directories that are read, and nothing else is.
func TestPatterns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testzk.Shared(t), "/service/*/leader", "/controller", "/a?c/l*", `/lit\*eral/x`, "lock:*")
	for _, node := range []string{"/service/one/leader", "/service/two/leader", "/service/two/other", "/controller", "/abc/lx", "/abc/mx", "/abbc/lx", "/lit*eral/x", "/elsewhere"} {
		w.create(node, "node-1", zk.FlagEphemeral)
	}
	want := []string{"/abc/lx", "/controller", "/lit*eral/x", "/service/one/leader", "/service/two/leader"}
	sweep := w.sweep()
	if got := names(sweep.Locks); !slices.Equal(got, want) {
		t.Errorf("swept %q, want %q", got, want)
	}
	l := find(sweep.Locks, "/controller")
	if l.Holder.Host != "node-1" || l.Identity != locksteward.IdentityLineage || l.Session == nil || len(l.Session.Locks) != 4 && len(w.sweep().Locks[1].Session.Locks) != 4 {
		t.Errorf("seen %+v, session %+v", l.Observation, l.Session)
	}
	watch(t, w.scanner)
	state := w.src.WatchState()
	if len(state.Classes) != 2 || state.Classes[0].Coverage != source.CoveragePart || !strings.Contains(state.Classes[0].Reason, "lock:*") || state.Classes[1].Coverage != source.CoverageNone {
		t.Errorf("classes %+v", state.Classes)
	}
}

// Classes without a path are no reason to read anything, and it is said.
func TestNoPatterns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testzk.Shared(t), "lock:*")
	if sweep := w.sweep(); len(sweep.Locks) > 0 {
		t.Errorf("swept %q", names(sweep.Locks))
	}
	if got := w.src.Stats().Degraded; len(got) != 1 || !strings.Contains(got[0], "no class names a path") {
		t.Errorf("degraded %q", got)
	}
}

// A lock whose class is gone is still followed until it ends.
func TestClassesChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testzk.Shared(t), "/locks/*")
	node := w.create(curatorNode("/locks/a"), "", zk.FlagEphemeralSequential)
	w.sweep()
	set, err := class.NewSet([]class.Class{{Name: "other", Match: []string{"/others/*"}}})
	if err != nil {
		t.Fatal(err)
	}
	w.scanner.SetClasses(set)
	if l := w.one(); l.Class != class.Default || l.Configured {
		t.Errorf("seen %+v", l.Observation)
	}
	w.delete(node)
	if sweep := w.sweep(); len(sweep.Locks) != 0 || len(sweep.Endings) != 1 {
		t.Errorf("locks %q, endings %+v", names(sweep.Locks), sweep.Endings)
	}
}

// One directory that may not be read hides its own lock alone, and ends none.
func TestOneDirectoryIsForbidden(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testzk.Shared(t), "/locks/*")
	for _, lock := range []string{"/locks/a", "/locks/b", "/locks/c"} {
		w.create(curatorNode(lock), "", zk.FlagEphemeralSequential)
	}
	w.sweep()
	if _, err := w.app.SetACL(w.root+"/locks/b", zk.DigestACL(zk.PermRead, "somebody", "else"), -1); err != nil {
		t.Fatal(err)
	}
	sweep := w.sweep()
	if got := names(sweep.Locks); !slices.Equal(got, []string{"/locks/a", "/locks/b", "/locks/c"}) && !slices.Equal(got, []string{"/locks/a", "/locks/c"}) || len(sweep.Endings) > 0 {
		t.Errorf("swept %q, endings %+v", got, sweep.Endings)
	}
	stats := w.src.Stats()
	if stats.Forbidden != 1 || len(stats.Degraded) != 1 || !strings.Contains(stats.Degraded[0], "/locks/b") || !strings.Contains(stats.Degraded[0], "READ") {
		t.Errorf("stats %+v", stats)
	}
	checks := w.src.Check(t.Context())
	last := checks[len(checks)-1]
	if last.Status == source.StatusOK || last.Name != "directories" || !strings.Contains(last.Found, "1 of 3 cannot be read: /locks/b") {
		t.Errorf("checks %+v", checks)
	}
	// The others end as ever.
	for _, node := range []string{"/locks/a", "/locks/c"} {
		children, _, err := w.app.Children(w.root + node)
		if err != nil {
			t.Fatal(err)
		}
		w.delete(node + "/" + children[0])
	}
	if sweep := w.sweep(); len(sweep.Endings) != 2 {
		t.Errorf("endings %+v", sweep.Endings)
	}
}

// Who holds is known though the node itself may not be read, but for its data.
func TestNodeThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testzk.Shared(t), "/locks/*")
	node := w.create(curatorNode("/locks/a"), "worker", zk.FlagEphemeralSequential)
	if _, err := w.app.SetACL(w.root+node, zk.DigestACL(zk.PermRead, "somebody", "else"), -1); err != nil {
		t.Fatal(err)
	}
	l := w.one()
	if l.Holder.Host != "" || l.Session == nil || l.Identity != locksteward.IdentityStrong {
		t.Errorf("seen %+v", l.Observation)
	}
	release(t, w.releaser(), request(l), locksteward.RequestReleased)
}

// Addresses of sessions come from the admin server, where it is open.
func TestAdminServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testzk.Start(t, testzk.Admin), "/locks/*")
	w.create(curatorNode("/locks/a"), "", zk.FlagEphemeralSequential)
	src := open(t, source.Login{URL: "zookeeper://" + w.server.Addr() + w.root + "?admin_port=" + w.server.Admin()[strings.LastIndexByte(w.server.Admin(), ':')+1:]}, zksource.Options{})
	w.src, w.scanner = src, scan(t, src, "/locks/*")
	if l := w.one(); l.Session == nil || l.Session.Addr != "127.0.0.1" {
		t.Errorf("session %+v", l.Session)
	}
	for _, c := range src.Check(t.Context()) {
		if c.Status != source.StatusOK {
			t.Errorf("check %+v", c)
		}
	}
	closed := open(t, source.Login{URL: "zookeeper://" + w.server.Addr() + w.root + "?admin_port=1"}, zksource.Options{})
	w.src, w.scanner = closed, scan(t, closed, "/locks/*")
	if l := w.one(); l.Session == nil || l.Session.Addr != "" {
		t.Errorf("session %+v", l.Session)
	}
	checks := closed.Check(t.Context())
	if last := checks[len(checks)-1]; last.Status == source.StatusOK || last.Name != "admin" || last.Todo == "" {
		t.Errorf("checks %+v", checks)
	}
}

// 10,000 locks are swept with few requests each; a queue of 10,000 is counted, not read.
func TestManyNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testzk.Shared(t), "/locks/*")
	const many = 10_000
	w.create("/locks/x", "", zk.FlagPersistent)
	w.delete("/locks/x")
	fill := func(n int, op func(i int) []any) {
		t.Helper()
		for i := 0; i < n; i += 500 {
			var ops []any
			for j := i; j < min(i+500, n); j++ {
				ops = append(ops, op(j)...)
			}
			if _, err := w.app.Multi(ops...); err != nil {
				t.Fatal(err)
			}
		}
	}
	node := func(path string, flags int32) any {
		return &zk.CreateRequest{Path: w.root + path, Acl: anybody, Flags: flags}
	}
	fill(many, func(i int) []any {
		lock := fmt.Sprintf("/locks/%d", i)
		return []any{node(lock, zk.FlagPersistent), node(curatorNode(lock), zk.FlagEphemeralSequential)}
	})
	before, cpu := time.Now(), w.server.CPUTime()
	sweep := w.sweep()
	took, used := time.Since(before), w.server.CPUTime()-cpu
	if len(sweep.Locks) != many {
		t.Errorf("%d locks, want %d", len(sweep.Locks), many)
	}
	t.Logf("a sweep of %d locks takes %s and %s of the server's CPU", many, took, used)
	fill(many, func(int) []any { return []any{node(curatorNode("/locks/0"), zk.FlagEphemeralSequential)} })
	sweep = w.sweep()
	if l := find(sweep.Locks, "/locks/0"); l == nil || l.Waiters != many || len(sweep.Waiters) != 0 {
		t.Errorf("seen %+v, %d waiters", l, len(sweep.Waiters))
	}
}

// At rest the watch asks nothing: the session's pings alone are sent.
func TestWatchAtRest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testzk.Shared(t), "/locks/*")
	for i := range 20 {
		w.create(curatorNode(fmt.Sprintf("/locks/%d", i)), "", zk.FlagEphemeralSequential)
	}
	w.sweep()
	watch(t, w.scanner)
	before := w.src.WatchState()
	wait := time.NewTimer(time.Second)
	<-wait.C
	if after := w.src.WatchState(); after.Mode != source.WatchTracking || after.Reads != before.Reads || after.Waiting != 0 {
		t.Errorf("at rest %+v, was %+v", after, before)
	}
}

// The watch sees new and changed holds of shared locks, queues, semaphores and fixed nodes, in
// directories that come and go.
func TestWatchOfRecipes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testzk.Shared(t), "/locks/*", "/deep/*/leader", "/controller")
	w.sweep()
	seen := watch(t, w.scanner)
	held := func(name string) {
		t.Helper()
		testredis.Eventually(t, soon, func() bool { return seen.held(name) }, name+" is not passed")
	}
	ended := func(name string) {
		t.Helper()
		testredis.Eventually(t, soon, func() bool { return seen.ended(name) }, "the end of "+name+" is not passed")
	}
	controller := w.create("/controller", "", zk.FlagEphemeral)
	held("/controller")
	w.delete(controller)
	ended("/controller")
	leader := w.create("/deep/cluster/leader", "", zk.FlagEphemeral)
	held("/deep/cluster/leader")
	w.delete(leader)
	ended("/deep/cluster/leader")
	reader := w.create("/locks/rw/_c_"+uuid()+"-__READ__", "", zk.FlagEphemeralSequential)
	held(reader)
	w.create("/locks/rw/_c_"+uuid()+"-__WRIT__", "", zk.FlagEphemeralSequential)
	w.delete(reader)
	ended(reader)
	held("/locks/rw")
	w.create("/locks/sem/locks/x", "", zk.FlagPersistent)
	lease := w.create("/locks/sem/leases/_c_"+uuid()+"-lease-", "", zk.FlagEphemeralSequential)
	held(lease)
	w.delete(lease)
	ended(lease)
	w.delete("/locks/sem/leases")
	w.delete("/locks/sem/locks/x")
	w.delete("/locks/sem/locks")
	w.delete("/locks/sem")
	lease = w.create("/locks/sem/leases/_c_"+uuid()+"-lease-", "", zk.FlagEphemeralSequential)
	w.create("/locks/sem/locks/x", "", zk.FlagPersistent)
	held(lease)
	w.src.Request("/locks/rw", true)
	testredis.Eventually(t, soon, func() bool { return w.src.WatchState().Waiting == 0 }, "a request is not read")
}

func TestRights(t *testing.T) {
	t.Parallel()
	set, err := class.NewSet([]class.Class{{Name: "a", Match: []string{"/locks/*", "lock:*"}}, {Name: "b", Match: []string{"/service/*/leader"}}})
	if err != nil {
		t.Fatal(err)
	}
	commands := func(text string) []string {
		var out []string
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "#") {
				out = append(out, strings.TrimSpace(line))
			}
		}
		return out
	}
	for name, tt := range map[string]struct {
		got, want []string
	}{
		"both": {commands(zksource.Rights("s", "r", set)), []string{
			"setAcl /locks CURRENT,digest:s:HASH:r", "setAcl /service CURRENT,digest:s:HASH:r",
			"setAcl /locks/* CURRENT,digest:s:HASH:r,digest:r:HASH:rd", "setAcl /service/*/leader CURRENT,digest:s:HASH:r,digest:r:HASH:rd",
			`create /locksteward-releases "" digest:r:HASH:crd`,
		}},
		"reader alone": {commands(zksource.Rights("s", "", set)), []string{
			"setAcl /locks CURRENT,digest:s:HASH:r", "setAcl /service CURRENT,digest:s:HASH:r",
			"setAcl /locks/* CURRENT,digest:s:HASH:r", "setAcl /service/*/leader CURRENT,digest:s:HASH:r",
		}},
		"anybody reads": {commands(zksource.Rights("", "r", set)), []string{
			"setAcl /locks/* CURRENT,digest:r:HASH:rd", "setAcl /service/*/leader CURRENT,digest:r:HASH:rd",
			`create /locksteward-releases "" digest:r:HASH:crd`,
		}},
	} {
		if !slices.Equal(tt.got, tt.want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(tt.got, "\n"), strings.Join(tt.want, "\n"))
		}
	}
}
