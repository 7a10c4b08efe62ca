package release_test

import (
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/release"
)

// TestApprovalStatus: a request tells how many people it takes and what they should
// know, and nothing of that once it is over.
func TestApprovalStatus(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	e.put(t, "lock:two:1", uuid, minute)
	r := e.request(t, ana, "lock:two:1")
	if got := e.service.ApprovalStatus(r); got.Approvals != 2 || got.Denials != 1 || len(got.Warnings) != 0 {
		t.Errorf("of an open request: %+v", got)
	}
	if err := e.service.Pause(t.Context(), admin, release.PauseAutomatic, e.clock.now().Add(time.Hour), "sale"); err != nil {
		t.Fatal(err)
	}
	if got := e.service.ApprovalStatus(r); len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "paused automatic releases") {
		t.Errorf("while paused: %+v", got)
	}
	r.State = locksteward.RequestReleased
	if got := e.service.ApprovalStatus(r); len(got.Warnings) != 0 {
		t.Errorf("of one that is over: %+v", got)
	}
	r.Evidence.Class = "gone"
	if got := e.service.ApprovalStatus(r); got.Approvals != 0 || got.Denials != 0 {
		t.Errorf("of a class that is gone: %+v", got)
	}
}

// TestPauseStatus: pauses are shown with who and why, also by the next agent; one that is
// over is not.
func TestPauseStatus(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	if got := e.service.PauseStatus(); got.All != nil || got.Automatic != nil || got.Configured || got.Window != "" {
		t.Errorf("of nothing: %+v", got)
	}
	until := e.clock.now().Add(time.Hour)
	if err := e.service.Pause(t.Context(), admin, release.PauseAutomatic, until, "sale"); err != nil {
		t.Fatal(err)
	}
	if err := e.service.Pause(t.Context(), admin, release.PauseAll, time.Time{}, "wrong locks go"); err != nil {
		t.Fatal(err)
	}
	e.newService(t, release.Config{Paused: true, PauseWindows: []release.PauseWindow{
		{Name: "night", From: "00:00", To: "23:59"}, {Name: "night", From: "23:58", To: "00:01"}, // at whatever time the test runs
	}})
	if got := e.service.PauseStatus(); !got.Unknown {
		t.Errorf("before the store was asked: %+v", got)
	}
	if err := e.service.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := e.service.PauseStatus()
	if all := got.All; all == nil || all.By != "adm" || all.Reason != "wrong locks go" || !all.Until.IsZero() || !got.Configured || got.Unknown {
		t.Errorf("after a restart: %+v", got)
	}
	if auto := got.Automatic; auto == nil || !auto.Until.Equal(until) || auto.By != "adm" || auto.Reason != "sale" || got.Window != "night" {
		t.Errorf("after a restart: %+v", got)
	}
	e.clock.add(2 * time.Hour)
	if got := e.service.PauseStatus(); got.Automatic != nil {
		t.Errorf("after its end: %+v", got)
	}
	if err := e.service.Resume(t.Context(), admin, release.PauseAll, "mended"); err != nil {
		t.Fatal(err)
	}
	if got := e.service.PauseStatus(); got.All != nil || !got.Configured {
		t.Errorf("after a resume: %+v", got)
	}
}
