package exporter_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/exporter"
)

func renewals(n int) func(*locksteward.Lock) {
	return func(l *locksteward.Lock) { l.History.Renewals = n }
}

func TestCountersOfClaims(t *testing.T) {
	t.Parallel()
	e := newExporter(t, exporter.Config{}, "a", "foreign")
	old := func(c locksteward.Claim) locksteward.Lock {
		return lock("a", "a:1", claimed("c1", t0.Add(-time.Hour), c))
	}
	e.ObserveSweep(sweep(0, old(locksteward.Claim{Renewals: 500, RenewFailures: 4}), lock("foreign", "f:1")))
	// What the hold had counted before this agent began is no increase.
	want(t, e, map[string]float64{
		`lock_acquires_total{class="a",target="m"}`:               0,
		`lock_renewals_total{class="a",target="m"}`:               0,
		`lock_renewal_failures_total{class="a",target="m"}`:       0,
		`lock_acquire_failures_total{class="a",target="m"}`:       0,
		`lock_renewal_failures_total{class="foreign",target="m"}`: absent,
		`lock_acquire_failures_total{class="foreign",target="m"}`: absent,
	})
	e.ObserveSweep(sweep(1,
		old(locksteward.Claim{Renewals: 503, RenewFailures: 5}),
		// Taken after the first sweep: all that it counted is new.
		lock("a", "a:2", claimed("c2", t0.Add(time.Second), locksteward.Claim{Renewals: 2})),
		// Taken before it, and missed by it: when its renewals were is not known.
		lock("a", "a:3", claimed("c3", t0.Add(-time.Minute), locksteward.Claim{Renewals: 70})),
		lock("foreign", "f:1", renewals(1)),
	))
	want(t, e, map[string]float64{
		`lock_acquires_total{class="a",target="m"}`:         1,
		`lock_renewals_total{class="a",target="m"}`:         5,
		`lock_renewal_failures_total{class="a",target="m"}`: 1,
		`lock_renewals_total{class="foreign",target="m"}`:   1,
	})
	// The metadata went, then came back: readings of two sources are not compared.
	e.ObserveSweep(sweep(2, lock("a", "a:1", renewals(9), func(l *locksteward.Lock) { l.TokenDigest = "hmac-sha256:c1" })))
	e.ObserveSweep(sweep(3, old(locksteward.Claim{Renewals: 700})))
	want(t, e, map[string]float64{`lock_renewals_total{class="a",target="m"}`: 5})
}

func TestNewHoldsOfForeignLocks(t *testing.T) {
	t.Parallel()
	e := newExporter(t, exporter.Config{}, "a")
	cut := sweep(0, lock("a", "a:1"))
	cut.Masters[0].Complete = false
	e.ObserveSweep(cut)
	// Only now is it known what was there.
	e.ObserveSweep(sweep(1, lock("a", "a:1"), lock("a", "a:2", renewals(3))))
	want(t, e, map[string]float64{`lock_acquires_total{class="a",target="m"}`: 0, `lock_renewals_total{class="a",target="m"}`: 0})
	e.ObserveSweep(sweep(2,
		lock("a", "a:1", heldSince(later(2))), // the next hold of the same key
		lock("a", "a:2", renewals(4)),
		lock("a", "a:3", heldSince(later(2))),
	))
	want(t, e, map[string]float64{`lock_acquires_total{class="a",target="m"}`: 2, `lock_renewals_total{class="a",target="m"}`: 1})

	// A value too large to read looks like another one at every look.
	big := func(l *locksteward.Lock) { l.TokenDigest, l.TooLarge = "", true }
	e.ObserveSweep(sweep(3, lock("a", "a:4", big, heldSince(later(3)))))
	e.ObserveSweep(sweep(4, lock("a", "a:4", big, heldSince(later(4)))))
	want(t, e, map[string]float64{`lock_acquires_total{class="a",target="m"}`: 3})
}

func TestEndingsFeedHoldsAndExpiries(t *testing.T) {
	t.Parallel()
	e := newExporter(t, exporter.Config{}, "a")
	seen := lock("a", "a:1", at(t0.Add(40*time.Second)))
	e.ObserveSweep(sweep(0, seen))
	s := sweep(1)
	s.Endings = []locksteward.Ending{
		// Seen for 40 s.
		{Lock: seen, How: locksteward.EndedReleased, At: later(1)},
		// Ours, expired after a lease of 2 min.
		{Lock: lock("a", "a:2", claimed("c2", t0.Add(-time.Minute), locksteward.Claim{})), How: locksteward.EndedExpired, At: later(2)},
		// Seen once, idle unknown: its duration is not known.
		{Lock: lock("a", "a:3"), How: locksteward.EndedExpired, At: later(1)},
		// Idle time is no hold time.
		{Lock: lock("a", "a:4", func(l *locksteward.Lock) { l.Idle = time.Hour }), How: locksteward.EndedReleased, At: later(1)},
	}
	e.ObserveSweep(s)
	want(t, e, map[string]float64{
		`locks_expired_total{class="a",target="m"}`:               2,
		`lock_hold_seconds_count{class="a",target="m"}`:           2,
		`lock_hold_seconds_sum{class="a",target="m"}`:             160,
		`lock_hold_seconds_bucket{class="a",target="m",le="30"}`:  0,
		`lock_hold_seconds_bucket{class="a",target="m",le="60"}`:  1,
		`lock_hold_seconds_bucket{class="a",target="m",le="300"}`: 2,
		`lock_hold_seconds_count{class="default",target="m"}`:     absent,
		`locks{class="a",library="token",target="m"}`:             absent,
		`locks_expired_total{class="default",target="m"}`:         0,
	})
	native := false
	families, err := e.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "locksteward_lock_hold_seconds" {
			native = len(f.GetMetric()[0].GetHistogram().GetPositiveSpan()) > 0
		}
	}
	if !native {
		t.Error("the histogram of hold times has no native buckets")
	}
}

func TestLossesCountOnce(t *testing.T) {
	t.Parallel()
	e := newExporter(t, exporter.Config{}, "a")
	loss := func(key, id string) locksteward.Loss {
		return locksteward.Loss{Target: "m", Key: key, Class: "a", How: locksteward.EndedExpired, Claim: locksteward.Claim{ID: id}}
	}
	s := sweep(0)
	s.Losses = []locksteward.Loss{loss("a:1", "before")} // lost before the agent began
	e.ObserveSweep(s)
	want(t, e, map[string]float64{`locks_lost_total{class="a",target="m"}`: 0})
	for n := range 3 { // its metadata stays for minutes
		s = sweep(n + 1)
		s.Losses = []locksteward.Loss{loss("a:1", "before"), loss("a:1", "after"), loss("a:2", "after")}
		e.ObserveSweep(s)
	}
	want(t, e, map[string]float64{`locks_lost_total{class="a",target="m"}`: 2})
}

func TestRecheckChangesOnlyWhatItRead(t *testing.T) {
	t.Parallel()
	e := newExporter(t, exporter.Config{}, "a")
	e.ObserveRecheck(sweep(0, lock("a", "a:1")).Update())
	want(t, e, map[string]float64{`locks{class="a",library="token",target="m"}`: absent})
	if e.Ready("m") == nil {
		t.Error("a recheck made the target ready")
	}

	e.ObserveSweep(sweep(1, lock("a", "a:1", noTTL), lock("a", "a:2", noTTL)))
	s := sweep(2, lock("a", "a:2", renewals(1))).Update()
	s.Endings = []locksteward.Ending{{Lock: lock("a", "a:1", noTTL, at(later(2))), How: locksteward.EndedExpired, At: later(2)}}
	e.ObserveRecheck(s)
	want(t, e, map[string]float64{
		`locks{class="a",library="token",target="m"}`: 1,
		`locks_without_ttl{class="a",target="m"}`:     0,
		`locks_expired_total{class="a",target="m"}`:   1,
		`lock_renewals_total{class="a",target="m"}`:   1,
		`sweep_complete{target="m"}`:                  1,
		`sweep_keys_total{target="m"}`:                100,
	})
	// While the target is away, one lock is no picture of it.
	e.ObserveSweep(locksteward.Sweep{Target: "m"})
	e.ObserveRecheck(sweep(4, lock("a", "a:2")).Update())
	want(t, e, map[string]float64{`locks{class="a",library="token",target="m"}`: absent})
}

func TestOperationalCounters(t *testing.T) {
	t.Parallel()
	e := newExporter(t, exporter.Config{}, "a")
	e.AddThrottled("m", "duty", 1500*time.Millisecond)
	e.AddThrottled("m", "duty", -time.Hour)
	e.AddThrottled("m", "duty", 500*time.Millisecond)
	e.SetReleaseEnabled("m", false)
	e.SetRequests(map[locksteward.RequestState]int{locksteward.RequestPending: 2, locksteward.RequestReleased: 5})
	e.CountRelease("m", "a", "released")
	e.CountRelease("m", "a", "released")
	e.CountRelease("m", "gone-from-config", "changed")
	e.CountDelivery("ops", "delivered", "ok")
	e.CountDelivery("ops", "retried", "timeout")
	e.CountDelivery("ops", "retried", "timeout")
	e.InitDelivery("ops", "retried", "timeout")
	e.InitDelivery("ops", "dropped", "http_4xx")
	e.SetOutbox([]exporter.Backlog{{Receiver: "gone", Waiting: 9}, {Receiver: "ops", Waiting: 9}})
	e.SetOutbox([]exporter.Backlog{{Receiver: "ops", Waiting: 3, Dead: 2, Oldest: 90 * time.Second}, {Receiver: "chat"}})
	e.SetReload(true)
	want(t, e, map[string]float64{
		`notifications_queue_length{receiver="ops"}`:                              3,
		`notifications_oldest_seconds{receiver="ops"}`:                            90,
		`notifications_dead{receiver="ops"}`:                                      2,
		`notifications_queue_length{receiver="chat"}`:                             0,
		`notifications_oldest_seconds{receiver="chat"}`:                           0,
		`budget_throttled_seconds_total{reason="duty",target="m"}`:                2,
		`release_enabled{target="m"}`:                                             0,
		`release_requests{state="pending"}`:                                       2,
		`release_requests{state="unknown"}`:                                       0,
		`release_requests{state="released"}`:                                      5,
		`releases_total{class="a",outcome="released",target="m"}`:                 2,
		`releases_total{class="_other",outcome="changed",target="m"}`:             1,
		`notifications_total{outcome="delivered",reason="ok",receiver="ops"}`:     1,
		`notifications_total{outcome="retried",reason="timeout",receiver="ops"}`:  2,
		`notifications_total{outcome="dropped",reason="http_4xx",receiver="ops"}`: 0,
		`config_last_reload_successful`:                                           1,
	})
	if text := scrapeText(t, e); strings.Contains(text, `receiver="gone"`) {
		t.Error("a receiver that is gone is shown")
	}
	e.SetReload(false)
	want(t, e, map[string]float64{`config_last_reload_successful`: 0})
}

// TestCountersNeverGoDown drives random sweeps, cut ones and absences among
// them, one of the classes not configured.
func TestCountersNeverGoDown(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 7))
		e := newExporter(t, exporter.Config{}, "a", "b", "c")
		classes := []string{"a", "b", "c", "default", "gone"}
		live := map[string]locksteward.Lock{}
		before := map[string]float64{}
		for n := range 60 {
			s := sweep(n)
			// In the order of keys: a seed is the same run each time, and one in which something happens.
			for _, key := range slices.Sorted(maps.Keys(live)) {
				l := live[key]
				if r.IntN(6) == 0 {
					delete(live, key)
					if r.IntN(4) > 0 { // else the scanner missed how it ended
						s.Endings = append(s.Endings, locksteward.Ending{Lock: l, How: []locksteward.EndedHow{locksteward.EndedExpired, locksteward.EndedReleased}[r.IntN(2)], At: later(n)})
					}
					continue
				}
				l.At = later(n)
				l.History.Renewals += r.IntN(3)
				if l.Claim != nil {
					c := *l.Claim
					c.Renewals += int64(r.IntN(3))
					l.Claim = &c
				}
				live[key] = l
			}
			for range r.IntN(4) {
				key := string(rune('p' + r.IntN(8)))
				if _, taken := live[key]; taken {
					continue
				}
				l := lock(classes[r.IntN(len(classes))], key, heldSince(later(n)), at(later(n)))
				if r.IntN(2) == 0 {
					claimed(key+later(n).String(), later(n), locksteward.Claim{})(&l)
				}
				live[key] = l
			}
			for _, key := range slices.Sorted(maps.Keys(live)) {
				if r.IntN(10) > 0 {
					s.Locks = append(s.Locks, live[key])
				}
			}
			switch r.IntN(6) {
			case 0:
				s.Masters[0].Complete = false
			case 1:
				s = locksteward.Sweep{Target: "m"}
			}
			e.ObserveSweep(s)
			if r.IntN(3) == 0 {
				setFindings(e, "m", []locksteward.Finding{finding(classes[r.IntN(len(classes))], "ttl/none", locksteward.SeverityCritical, "k")})
			}
			now := scrape(t, e)
			for name, v := range now {
				if strings.Contains(name, "_total") && strings.HasPrefix(name, "locksteward_") && v < before[name] {
					t.Fatalf("seed %d, sweep %d: %s fell from %v to %v", seed, n, name, before[name], v)
				}
			}
			maps.Copy(before, now) // keeps the last value of series that are away
		}
		if before[`locksteward_lock_renewals_total{class="_other",target="m"}`] == 0 {
			t.Fatalf("seed %d: nothing happened in a class that is not configured, so the test shows nothing", seed)
		}
	}
}
