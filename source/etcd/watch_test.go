package etcdsource

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testetcd"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source"
)

// testHost is a host that knows no locks, and notes what it gets.
type testHost struct {
	throttle *source.Throttle

	mu      sync.Mutex
	sweeps  int
	applied []string // names of locks
}

func (*testHost) Target() locksteward.Target                        { return locksteward.Target{Name: "t"} }
func (h *testHost) Throttle() *source.Throttle                      { return h.throttle }
func (*testHost) Len() int                                          { return 0 }
func (*testHost) Lookup(string) (source.Known, bool)                { return source.Known{}, false }
func (*testHost) Each(func(source.Known))                           {}
func (*testHost) ClockOffset(string) time.Duration                  { return 0 }
func (*testHost) SetClockOffset(string, time.Duration)              {}
func (*testHost) ClockRead(string, time.Time, time.Time, time.Time) {}
func (*testHost) SetLine(string, string)                            {}
func (*testHost) Lost(string, time.Time, bool)                      {}
func (*testHost) Alive()                                            {}

func (h *testHost) RequestSweep() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sweeps++
}

func (h *testHost) Apply(_ context.Context, b source.Batch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range b.Readings {
		h.applied = append(h.applied, r.Name)
	}
}

func (h *testHost) asked(sweeps int) func() bool {
	return func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.sweeps == sweeps
	}
}

func (h *testHost) got(name string) func() bool {
	return func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return slices.Contains(h.applied, name)
	}
}

func classesOf(t *testing.T, patterns ...string) *class.Set {
	t.Helper()
	set, err := class.NewSet([]class.Class{{Name: "all", Match: patterns}})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// A watch goes on from the last sweep. Where that is not possible, since etcd has dropped
// the revision, was restored from a backup, or other prefixes are to be watched, it begins
// anew and a sweep is asked for.
func TestWatchGoesOnOrBeginsAnew(t *testing.T) {
	t.Parallel()
	const soon = 30 * time.Second
	server := testetcd.Start(t)
	client := server.Client(t)
	put := func(key string) int64 {
		t.Helper()
		resp, err := client.Put(t.Context(), key, "")
		if err != nil {
			t.Fatal(err)
		}
		return resp.Header.Revision
	}
	s, err := Open(source.Login{URL: server.URL()}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	host := &testHost{throttle: source.NewThrottle(nil)}
	s.Bind(host)
	s.SetClasses(classesOf(t, "lock:*"))
	run := func() (stop func()) {
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		done := make(chan error)
		go func() { done <- s.Watch(ctx) }()
		return func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}

	s.sweptAt(put("other"))
	put("lock:between")
	stop := run()
	testredis.Eventually(t, soon, host.got("lock:between"), "what happened since the sweep is not passed")
	if !host.asked(0)() {
		t.Error("a sweep is asked for though nothing is missed")
	}
	stop()

	put("lock:compacted")
	if _, err := client.Compact(t.Context(), put("other")); err != nil {
		t.Fatal(err)
	}
	stop = run()
	testredis.Eventually(t, soon, host.asked(1), "no sweep after a compaction")
	put("lock:after")
	testredis.Eventually(t, soon, host.got("lock:after"), "it does not watch")
	stop()

	last := put("other")
	s.sweptAt(last + 1000) // before the data was restored
	stop = run()
	s.AwaitWatch(t.Context())
	s.sweptAt(last)
	put("lock:restored")
	testredis.Eventually(t, soon, host.got("lock:restored"), "it waits for a revision to come")
	s.SetClasses(classesOf(t, "lock:*", "mutex:*"))
	testredis.Eventually(t, soon, host.asked(2), "no sweep of the new prefix")
	put("mutex:a")
	testredis.Eventually(t, soon, host.got("mutex:a"), "it does not watch the new prefix")
	stop()
}

// A lock whose lease etcd does not know never ends by itself.
func TestLeaseThatIsNotThere(t *testing.T) {
	t.Parallel()
	f := &found{name: "lock:a", keys: []entry{{key: "lock:a", create: 5, lease: 7}}}
	o, _ := f.reading(time.Now(), map[int64]lease{7: {gone: true}}, locksteward.NewDigestKey())
	if o.Lifetime != locksteward.LifetimePersistent || o.TTL != locksteward.NoExpiry || o.ExpireAt != locksteward.NoExpireAt {
		t.Errorf("%+v", o)
	}
}

// Readings are in the order of revisions, whatever the order of answers and the clock.
func TestReadingsAreOrdered(t *testing.T) {
	t.Parallel()
	clock := time.Unix(1000, 0)
	r := newReader(nil, func() time.Time { return clock })
	first, ok := r.stamp(5, 0)
	if !ok {
		t.Fatal("the first answer is overtaken")
	}
	second, ok := r.stamp(7, 5)
	if !ok || !second.After(first) {
		t.Errorf("%s, then %s", first, second)
	}
	if _, ok := r.stamp(6, 5); ok {
		t.Error("an answer that was overtaken counts")
	}
	if again, ok := r.stamp(7, 7); !ok || !again.After(second) {
		t.Errorf("the same revision again: %s, %v", again, ok)
	}
	if _, ok := r.stamp(3, 7); !ok {
		t.Error("data that was restored is never read")
	}
	clock = clock.Add(-time.Hour)
	if back, ok := r.stamp(8, 3); !ok || !back.Equal(clock) {
		t.Errorf("after our clock was set back: %s, %v", back, ok)
	}
}

func TestRate(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	r := rate{perSecond: 100}
	for i := range 10 {
		if d := r.next(now); d > 0 {
			t.Fatalf("request %d waits %s", i, d)
		}
	}
	if d := r.next(now); d != 10*time.Millisecond {
		t.Errorf("the eleventh waits %s", d)
	}
	if d := r.next(now.Add(time.Hour)); d > 0 {
		t.Errorf("after a rest: %s", d)
	}
	if d := (&rate{perSecond: -1}).next(now); d != 0 {
		t.Errorf("without a bound: %s", d)
	}
}

// Rights to everything are never given in silence.
func TestRightsToAllKeys(t *testing.T) {
	t.Parallel()
	const warning = "rights to EVERY key"
	if text := Rights(classesOf(t, "*:lock")); !strings.Contains(text, warning) || !strings.Contains(text, " readwrite -- ''\n") {
		t.Errorf("%s", text)
	}
	if text := Rights(classesOf(t, "lock:\xff*", "it's*")); strings.Contains(text, warning) || !strings.Contains(text, ` read -- $'\x6c\x6f\x63\x6b\x3a\xff'`) || !strings.Contains(text, ` read -- 'it'\''s'`) {
		t.Errorf("%s", text)
	}
}
