package cluster

import (
	"testing"
	"time"

	"github.com/locksteward/locksteward/store"
)

// The state of a target after probes that failed (x) and did not (o), where h is another replica that reports that it
// reaches the target, and q one that does no longer.
func TestProbeState(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		events                            string
		unreachable, reachable, confirmed bool
	}{
		{"", false, false, false},
		{"o", false, true, false},
		{"x", false, false, false},
		{"xo", false, true, false},
		{"xoxox", false, false, false},
		{"xx", true, false, false},
		{"xxo", true, false, false},
		{"xxoxo", true, false, false},
		{"xxoo", false, true, false},
		{"xxh", true, false, false}, // earlier probes do not count
		{"xxhx", true, false, true},
		{"hxx", true, false, true},
		{"xhx", true, false, true},
		{"xxhxo", true, false, false},
		{"xxhxox", true, false, true},
		{"xxhxq", true, false, false},
		{"xxhxqxhh", true, false, false},
		{"xxhxoo", false, true, false},
		{"hx", false, false, false},
	} {
		var s probeState
		now := time.Unix(1_800_000_000, 0)
		for _, e := range c.events {
			now = now.Add(time.Second)
			switch e {
			case 'x':
				s.record("refused", now)
			case 'o':
				s.record("", now)
			case 'h', 'q':
				s.setReachableElsewhere(e == 'h', now)
			}
		}
		if s.unreachable != c.unreachable || s.reachable() != c.reachable || s.confirmed != c.confirmed {
			t.Errorf("%q: unreachable %t, reachable %t, confirmed %t; want %t, %t, %t", c.events, s.unreachable, s.reachable(), s.confirmed, c.unreachable, c.reachable, c.confirmed)
		}
	}
	// A probe that was under way then proves nothing about the time after.
	var s probeState
	began := time.Unix(1_800_000_000, 0)
	s.record("refused", began)
	s.record("refused", began)
	if !s.setReachableElsewhere(true, began.Add(time.Second)) {
		t.Error("not probed again at once")
	}
	if s.record("refused", began); s.confirmed {
		t.Error("confirmed by a probe that started before another replica reached it")
	}
	if s.setReachableElsewhere(true, began.Add(2*time.Second)) {
		t.Error("probed again for what it knew")
	}
}

// A target that is unreachable for long is probed less often by replicas that do not work on
// it: each probe connects.
func TestIntervalOfProbes(t *testing.T) {
	t.Parallel()
	for _, why := range []string{"", "refused"} {
		var s probeState
		var strangers, worker time.Duration
		for range 60 {
			s.record(why, time.Time{})
			strangers, worker = strangers+s.interval(false), worker+s.interval(true)
		}
		if strangers < 4*time.Minute || worker > time.Minute || worker < 55*time.Second {
			t.Errorf("60 probes (%q): %s by others, %s by the owner", why, strangers, worker)
		}
	}
}

// A replica that could not reach a target is not given it for a minute after.
func TestUnreliableAfterUnreachable(t *testing.T) {
	t.Parallel()
	a := newPresence(time.Second)
	now := time.Unix(1_800_000_000, 0)
	heartbeat := func(unreachable ...string) {
		a.update([]store.Replica{{ID: "a1", Name: "a", Unreachable: unreachable, Left: time.Hour}}, now, now)
	}
	heartbeat("t00")
	for range 59 {
		now = now.Add(time.Second)
		heartbeat()
		if !a.unreliable("a1", "t00", now) {
			t.Fatalf("reliable after %s", now)
		}
	}
	if a.unreliable("a1", "t01", now) || a.unreliable("b1", "t00", now) {
		t.Error("others are unreliable")
	}
	now = now.Add(time.Second)
	heartbeat()
	if a.unreliable("a1", "t00", now) || len(a.unreachable) != 0 {
		t.Errorf("unreliable after a minute: %v", a.unreachable)
	}
}
