package redis

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/redis/connect"
)

func openConn(t *testing.T, url string) *connect.Conn {
	t.Helper()
	conn, err := connect.Open(connect.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return conn
}

// TestABrokenRedirectIsReported: the tracker of a dead subscriber still answers
// PONG, and only CLIENT TRACKINGINFO says what is wrong.
// fault: 60
func TestABrokenRedirectIsReported(t *testing.T) {
	t.Parallel()
	testredis.Since(t, 6, 2, "CLIENT TRACKINGINFO")
	srv := testredis.Start(t)
	c := srv.Client(t)
	to := listener{changed: func([]string) {}, flushed: func() {}}
	p, err := openTracking(t.Context(), openConn(t, srv.URL()), newCaps(), srv.Addr(), []string{"lock:"}, to)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { p.close(); <-p.ended }()
	if err := p.check(t.Context()); err != nil {
		t.Fatalf("check: %v", err)
	}
	if err := c.ClientKillByFilter(t.Context(), "ID", fmt.Sprint(p.id)).Err(); err != nil {
		t.Fatal(err)
	}
	// The server notices when it wants to report something.
	if err := c.Set(t.Context(), "lock:a", "tok", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := p.tracker.Ping(t.Context()).Err(); err != nil {
		t.Errorf("ping: %v", err)
	}
	testredis.Eventually(t, 5*time.Second, func() bool {
		return errors.Is(p.checkTracker(t.Context()), errBroken)
	}, "the tracker's word is good")
}

func TestJudgeTracking(t *testing.T) {
	t.Parallel()
	p := &pair{id: 7, prefixes: []string{"a:", "b:"}}
	reply := func(redirect int64, prefixes []any, flags ...any) []any {
		return []any{"flags", flags, "redirect", redirect, "prefixes", prefixes}
	}
	both := []any{"b:", "a:"}
	for name, c := range map[string]struct {
		reply []any
		good  bool
	}{
		"whole":          {reply(7, both, "on", "bcast"), true},
		"broken":         {reply(7, both, "on", "bcast", "broken_redirect"), false},
		"off":            {reply(-1, nil, "off"), false},
		"not broadcast":  {reply(7, both, "on"), false},
		"other client":   {reply(8, both, "on", "bcast"), false},
		"fewer prefixes": {reply(7, []any{"a:"}, "on", "bcast"), false},
		"nothing":        {nil, false},
		"odd":            {[]any{"flags", 3, "redirect", "x", "prefixes"}, false},
	} {
		if err := p.judgeTracking(c.reply); (err == nil) != c.good || !c.good && !errors.Is(err, errBroken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFoldedPrefixes: whatever is wanted, no prefix overlaps another, and what
// the list covers is what it was asked to.
func TestFoldedPrefixes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		wanted := rapid.SliceOf(rapid.StringMatching(`[ab:]{0,4}`)).Draw(rt, "wanted")
		plan := watchPlan{prefixes: foldPrefixes(wanted)}
		for i, p := range plan.prefixes {
			for j, q := range plan.prefixes {
				if p == "" || i != j && len(q) >= len(p) && q[:len(p)] == p {
					rt.Fatalf("%q overlaps %q", p, q)
				}
			}
		}
		key := rapid.StringMatching(`[ab:]{0,6}`).Draw(rt, "key")
		want := slices.ContainsFunc(wanted, func(p string) bool { return p != "" && len(key) >= len(p) && key[:len(p)] == p })
		if got := plan.covers(key); got != want {
			rt.Fatalf("covers(%q) = %v with %q", key, got, wanted)
		}
	})
}

// Of what stands beside a lock of ours only that is watched which is read: each push
// costs the server about a microsecond.
func TestWatchPlanHearsOfLocksAlone(t *testing.T) {
	t.Parallel()
	set, err := class.NewSet(nil)
	if err != nil {
		t.Fatal(err)
	}
	plan := newWatchPlan(set, []string{"locksteward:", "other:"}, optionalPrefixes)
	for _, prefix := range []string{"locksteward:", "other:"} {
		for kind, want := range map[record.Kind]bool{
			record.KindHold: true, record.KindWaiter: true,
			record.KindQueue: false, record.KindUndo: false, record.KindExec: false,
		} {
			if key := record.Companion(prefix, kind, "any"); plan.covers(key) != want {
				t.Errorf("%s is watched: %v", key, !want)
			}
		}
		for _, key := range []string{record.FenceKey(prefix, "any"), record.InstanceKey(prefix, "any")} {
			if plan.covers(key) {
				t.Errorf("%s is watched", key)
			}
		}
	}
}

// What the server is asked to track covers what is wanted, with one prefix for all
// that begins with "lock" only where it reports the locks named so anyway.
func TestTracked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ wanted, want []string }{
		"without classes": {
			[]string{"lock:", "locks:", "locksteward:hold:", "locksteward:waiter:", "mutex:", "redlock:"},
			[]string{"lock", "mutex:", "redlock:"},
		},
		"classes of one's own": {
			[]string{"lock:jobs:", "lock:users:", "locksteward:hold:", "locksteward:waiter:"},
			[]string{"lock:jobs:", "lock:users:", "locksteward:hold:", "locksteward:waiter:"},
		},
		"nothing to spare": {[]string{"lock:", "locks:", "z"}, []string{"lock:", "locks:", "z"}},
		"a shorter one":    {[]string{"loc", "z"}, []string{"loc", "z"}},
		"nothing":          {nil, nil},
	} {
		before := slices.Clone(c.wanted)
		got := tracked(c.wanted)
		if !slices.Equal(got, c.want) || !slices.Equal(c.wanted, before) {
			t.Errorf("%s: %q, want %q; the wanted ones are %q now", name, got, c.want, c.wanted)
		}
		plan := watchPlan{prefixes: got}
		for _, p := range c.wanted {
			if !plan.covers(p) {
				t.Errorf("%s: nothing reports %q", name, p)
			}
		}
	}
}

func TestWatchPlanIsBounded(t *testing.T) {
	t.Parallel()
	var classes []class.Class
	for i := range 100 {
		classes = append(classes, class.Class{Name: fmt.Sprintf("c%d", i), Match: []string{fmt.Sprintf("app%d:lock:*", i)}})
	}
	set, err := class.NewSet(classes)
	if err != nil {
		t.Fatal(err)
	}
	plan := newWatchPlan(set, []string{"locksteward:"}, optionalPrefixes)
	if len(plan.prefixes) > maxPrefixes {
		t.Errorf("%d prefixes", len(plan.prefixes))
	}
	if !plan.covers("locksteward:hold:{x}") || newWatchPlan(set, []string{"locksteward:"}, nil).covers("locksteward:hold:{x}") {
		t.Error("companions are watched if they have a use, and only then")
	}
	if first, last := plan.classes[0], plan.classes[99]; first.Coverage != source.CoverageFull || last.Coverage != source.CoverageNone || last.Reason == "" {
		t.Errorf("first %+v, last %+v", first, last)
	}
	if d := plan.classes[100]; d.Class != class.Default || d.Coverage != source.CoveragePart || d.Reason == "" {
		t.Errorf("default: %+v", d)
	}
}

func TestQueue(t *testing.T) {
	t.Parallel()
	q := newQueue(time.Now())
	q.put(false, workItem{key: "calm"}, workItem{key: "both", waiters: true})
	q.put(true, workItem{key: "urgent"}, workItem{key: "both", written: true}, workItem{key: "urgent", metaPrefix: "m:"})
	got := q.take(10)
	for i := range got { // somebody waits for those that are urgent
		if urgent := got[i].key != "calm"; urgent != (got[i].since > 0) {
			t.Errorf("%q waits since %d", got[i].key, got[i].since)
		}
		got[i].since = 0
	}
	want := []workItem{{key: "urgent", metaPrefix: "m:"}, {key: "both", written: true, waiters: true}, {key: "calm"}}
	if !slices.Equal(got, want) {
		t.Errorf("took %+v, want %+v", got, want)
	}
	if !q.empty() || !q.has("calm") {
		t.Error("a key that is being read is not known")
	}
	q.done(got)
	if q.has("calm") {
		t.Error("a key that was read is still known")
	}
	for i := range maxQueued {
		if !q.put(true, workItem{key: fmt.Sprint(i)}) {
			t.Fatalf("no room for number %d", i)
		}
	}
	if q.put(true, workItem{key: "too many"}) || !q.put(true, workItem{key: "7"}) {
		t.Error("the queue is not bounded, or refuses what it has")
	}
}

// What a resync queues comes last, once, and is bounded with the others.
func TestQueueOfKnownKeys(t *testing.T) {
	t.Parallel()
	q := newQueue(time.Now())
	q.put(false, workItem{key: "calm"}, workItem{key: "looked at anyway"})
	if !q.putKnown([]string{"a", "b", "looked at anyway", "c", "a"}) || !q.putKnown([]string{"b", "d"}) {
		t.Fatal("no room for five keys")
	}
	q.put(true, workItem{key: "c", written: true, since: 1})
	for _, key := range []string{"a", "b", "c", "d"} {
		if !q.has(key) {
			t.Errorf("%q is not known to wait", key)
		}
	}
	if q.size() != 6 {
		t.Errorf("%d wait, want 6", q.size())
	}
	want := []workItem{
		{key: "c", written: true, waiters: true, since: 1},
		{key: "calm"},
		{key: "looked at anyway", waiters: true},
		{key: "a", waiters: true},
		{key: "b", waiters: true},
		{key: "d", waiters: true},
	}
	got := q.take(4)
	if q.empty() || !q.has("d") || !q.has("a") {
		t.Error("what is left, or is being read, is not known")
	}
	if got = append(got, q.take(4)...); !slices.Equal(got, want) {
		t.Errorf("took %+v, want %+v", got, want)
	}
	if !q.empty() || q.known.order != nil || q.known.all != nil {
		t.Error("a queue that is empty keeps the room of a resync")
	}
	many := make([]string, maxQueued+1)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	if !q.putKnown(many[:maxQueued]) || q.putKnown(many) || q.put(false, workItem{key: "too many"}) {
		t.Error("the queue is not bounded, or refuses what it has")
	}
	if !q.put(true, workItem{key: "7"}) || q.size() != maxQueued {
		t.Errorf("a key of a resync that changed has no room, or waits twice: %d wait", q.size())
	}
}

// TestReadCost books what the server says that its commands cost, within bounds,
// and never more than the time that passed.
func TestReadCost(t *testing.T) {
	t.Parallel()
	const long = time.Second
	stats := func(calls, usec int) info {
		return parseInfo(fmt.Sprintf("# Commandstats\r\ncmdstat_getrange:calls=%d,usec=%d,usec_per_call=0.5,rejected_calls=0\r\n"+
			"cmdstat_memory|usage:calls=%d,usec=%d,usec_per_call=0.5\r\ncmdstat_keys:calls=9,usec=90000000,usec_per_call=1\r\n", calls, usec, calls, usec))
	}
	c := newReadCost()
	want := func(what string, per time.Duration) {
		t.Helper()
		if got := c.of(100, long); got != callCost+100*per {
			t.Errorf("%s: 100 commands cost %s, want %s", what, got, callCost+100*per)
		}
	}
	want("not reported yet", unlearnedCost)
	c.learn(stats(10, 5)) // too few
	want("hardly reported", unlearnedCost)
	c.learn(stats(1000, 900))
	want("reported", 900*time.Nanosecond+aroundCommand)
	c.learn(stats(2000, 900+2000))
	want("slower since", 2*time.Microsecond+aroundCommand)
	c.learn(stats(5, 3)) // restarted
	want("restarted", 2*time.Microsecond+aroundCommand)
	c.learn(stats(1005, 3))
	want("faster than any", commandCost)
	c.learn(stats(2005, 1_000_000))
	want("slower than any", maxCost)
	if got := c.of(100, 30*time.Microsecond); got != 30*time.Microsecond {
		t.Errorf("100 commands in 30 µs cost %s", got)
	}
}
