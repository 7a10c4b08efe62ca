package replicas

import (
	"testing"
	"time"

	"github.com/locksteward/locksteward/store"
)

// TestSight: what is said of a target after attempts that failed (x) and did not (o),
// where h is another replica that says it reaches the target and q its silence.
func TestSight(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		events            string
		blind, sees, sure bool
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
		{"xxh", true, false, false}, // what it tried before it heard does not count
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
		var s sight
		now := time.Unix(1_800_000_000, 0)
		for _, e := range c.events {
			now = now.Add(time.Second)
			switch e {
			case 'x':
				s.note("refused", now)
			case 'o':
				s.note("", now)
			case 'h', 'q':
				s.hear(e == 'h', now)
			}
		}
		if s.blind != c.blind || s.sees() != c.sees || s.sure != c.sure {
			t.Errorf("%q: blind %t, sees %t, sure %t; want %t, %t, %t", c.events, s.blind, s.sees(), s.sure, c.blind, c.sees, c.sure)
		}
	}
	// One that was under way when it heard says nothing of the time after.
	var s sight
	began := time.Unix(1_800_000_000, 0)
	s.note("refused", began)
	s.note("refused", began)
	if !s.hear(true, began.Add(time.Second)) {
		t.Error("not tried again at once")
	}
	if s.note("refused", began); s.sure {
		t.Error("sure by an attempt that began before it heard")
	}
	if s.hear(true, began.Add(2*time.Second)) {
		t.Error("tried again for what it knew")
	}
}

// A target that is out of reach for long is tried less often by those that do not work on
// it: each time they connect.
func TestPauseBetweenLooks(t *testing.T) {
	t.Parallel()
	for _, why := range []string{"", "refused"} {
		var s sight
		var strangers, worker time.Duration
		for range 60 {
			s.note(why, time.Time{})
			strangers, worker = strangers+s.pause(false), worker+s.pause(true)
		}
		if strangers < 4*time.Minute || worker > time.Minute || worker < 55*time.Second {
			t.Errorf("60 looks (%q): %s by others, %s by who works on it", why, strangers, worker)
		}
	}
}

// Who did not reach a target is not given it for a minute after.
func TestWhoWasBlindIsShaky(t *testing.T) {
	t.Parallel()
	a := newAttendance(time.Second)
	now := time.Unix(1_800_000_000, 0)
	beat := func(blind ...string) {
		a.note([]store.Replica{{ID: "a1", Name: "a", Blind: blind, Left: time.Hour}}, now, now)
	}
	beat("t00")
	for range 59 {
		now = now.Add(time.Second)
		beat()
		if !a.shaky("a1", "t00", now) {
			t.Fatalf("steady after %s", now)
		}
	}
	if a.shaky("a1", "t01", now) || a.shaky("b1", "t00", now) {
		t.Error("others are shaky")
	}
	now = now.Add(time.Second)
	beat()
	if a.shaky("a1", "t00", now) || len(a.blind) != 0 {
		t.Errorf("shaky after a minute: %v", a.blind)
	}
}
