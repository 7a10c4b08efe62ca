package release_test

import (
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/release"
)

// TestStanding: a request tells how many people it takes and what they should
// know, and nothing of that once it is over.
func TestStanding(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.do(t, "set", "lock:two:1", uuid, "px", minute)
	r := e.request(t, ana, "lock:two:1")
	if got := e.service.Standing(r); got.Approvals != 2 || got.Denials != 1 || len(got.Warnings) != 0 {
		t.Errorf("of an open request: %+v", got)
	}
	if err := e.service.SetFreeze(t.Context(), admin, e.clock.now().Add(time.Hour), "sale"); err != nil {
		t.Fatal(err)
	}
	if got := e.service.Standing(r); len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "froze releases") {
		t.Errorf("in a freeze: %+v", got)
	}
	r.State = locksteward.RequestReleased
	if got := e.service.Standing(r); len(got.Warnings) != 0 {
		t.Errorf("of one that is over: %+v", got)
	}
	r.Evidence.Class = "gone"
	if got := e.service.Standing(r); got.Approvals != 0 || got.Denials != 0 {
		t.Errorf("of a class that is gone: %+v", got)
	}
}

// TestHalt: what keeps releases from happening is told with who and why, also by
// the next agent; a freeze that is over is not told.
func TestHalt(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	if got := e.service.Halt(); got.Killed || got.KillSwitch || got.Window != "" || !got.FrozenUntil.IsZero() {
		t.Errorf("of nothing: %+v", got)
	}
	until := e.clock.now().Add(time.Hour)
	if err := e.service.SetFreeze(t.Context(), admin, until, "sale"); err != nil {
		t.Fatal(err)
	}
	if err := e.service.SetKillSwitch(t.Context(), admin, true, "wrong locks go"); err != nil {
		t.Fatal(err)
	}
	e.newService(t, release.Config{KillSwitch: true, Freeze: []release.Freeze{{Name: "night", From: "00:00", To: "23:59"}}})
	if got := e.service.Halt(); !got.Unknown {
		t.Errorf("before the store was asked: %+v", got)
	}
	if err := e.service.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := e.service.Halt()
	if !got.Killed || got.KilledBy != "adm" || got.KilledWhy != "wrong locks go" || !got.KillSwitch || got.Unknown ||
		!got.FrozenUntil.Equal(until) || got.FrozenBy != "adm" || got.FrozenWhy != "sale" || got.Window != "night" {
		t.Errorf("after a restart: %+v", got)
	}
	e.clock.add(2 * time.Hour)
	if got := e.service.Halt(); !got.FrozenUntil.IsZero() || got.FrozenBy != "" || got.FrozenWhy != "" {
		t.Errorf("after its end: %+v", got)
	}
	if err := e.service.SetKillSwitch(t.Context(), admin, false, "mended"); err != nil {
		t.Fatal(err)
	}
	if got := e.service.Halt(); got.Killed || got.KilledBy != "" || got.KilledWhy != "" || !got.KillSwitch {
		t.Errorf("after it was turned off: %+v", got)
	}
}
