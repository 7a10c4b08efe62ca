package exporter_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/locksteward/locksteward/exporter"
)

func TestReceivers(t *testing.T) {
	t.Parallel()
	e := newExporter(t, exporter.Config{})
	e.SetReceivers("ops", "chat")
	want(t, e, map[string]float64{
		`notifications_suppressed_total{reason="silence",receiver="ops"}`:      0,
		`notifications_suppressed_total{reason="inhibit",receiver="ops"}`:      0,
		`notifications_suppressed_total{reason="first_sweep",receiver="chat"}`: 0,
		`notifications_suppressed_total{reason="match",receiver="chat"}`:       0,
		`notifications_omitted_total{receiver="ops"}`:                          0,
		`notification_groups{receiver="ops"}`:                                  0,
		`receiver_circuit_open{receiver="ops"}`:                                absent, // nobody said
		`notifications_queue_length{receiver="ops"}`:                           absent,
	})
	e.CountSuppressed("ops", exporter.SuppressedByInhibit, 3)
	e.CountSuppressed("ops", exporter.SuppressedByInhibit, 2)
	e.CountSuppressed("ops", exporter.SuppressedByMatch, -1)
	e.CountOmitted("ops", 40)
	e.CountTemplateFailure("ops")
	e.SetAlertGroups("ops", 7)
	e.InitDelivery("ops", "delivered", "ok")
	e.CountDelivery("chat", "retried", "timeout")
	e.SetOutbox([]exporter.Backlog{{Receiver: "chat", Waiting: 5, Oldest: time.Minute, CircuitOpen: true}, {Receiver: "ops"}})
	want(t, e, map[string]float64{
		`notifications_suppressed_total{reason="inhibit",receiver="ops"}`:         5,
		`notifications_suppressed_total{reason="match",receiver="ops"}`:           0,
		`notifications_omitted_total{receiver="ops"}`:                             40,
		`template_failures_total{receiver="ops"}`:                                 1,
		`template_failures_total{receiver="chat"}`:                                0,
		`notification_groups{receiver="ops"}`:                                     7,
		`notification_groups{receiver="chat"}`:                                    0,
		`receiver_circuit_open{receiver="chat"}`:                                  1,
		`receiver_circuit_open{receiver="ops"}`:                                   0,
		`notifications_total{outcome="delivered",reason="ok",receiver="ops"}`:     0,
		`notifications_total{outcome="retried",reason="timeout",receiver="chat"}`: 1,
	})

	// A receiver that a reload takes out is gone with all it had, and does not come
	// back with what was under way.
	e.SetReceivers("ops")
	e.CountDelivery("chat", "dropped", "removed")
	e.CountSuppressed("chat", exporter.SuppressedBySilence, 1)
	e.SetOutbox([]exporter.Backlog{{Receiver: "chat", Waiting: 1}, {Receiver: "ops"}})
	if text := scrapeText(t, e); strings.Contains(text, "chat") {
		t.Errorf("a receiver that is gone is shown:\n%s", grep(text, "chat"))
	}
	want(t, e, map[string]float64{`notifications_omitted_total{receiver="ops"}`: 40})
	e.SetReceivers("ops", "chat")
	want(t, e, map[string]float64{`notifications_suppressed_total{reason="silence",receiver="chat"}`: 0})
}

func TestTargetFigures(t *testing.T) {
	t.Parallel()
	e := newExporter(t, exporter.Config{})
	e.SetLeader("m", true, time.Time{}) // of a target that is not there
	want(t, e, map[string]float64{`leader{target="m"}`: absent})
	e.SetReleaseEnabled("m", true)
	want(t, e, map[string]float64{`leader{target="m"}`: absent, `findings_unsaved{target="m"}`: absent})
	e.SetLeader("m", true, time.Time{})
	e.SetUnsaved("m", 12)
	want(t, e, map[string]float64{`leader{target="m"}`: 1, `findings_unsaved{target="m"}`: 12})
	e.SetLeader("m", false, time.Time{})
	e.SetUnsaved("m", 0)
	want(t, e, map[string]float64{`leader{target="m"}`: 0, `findings_unsaved{target="m"}`: 0})
}

// A lease ends by the clock: anyone who would say so may be the one that hangs.
func TestARightEndsByItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newExporter(t, exporter.Config{})
		e.SetReleaseEnabled("m", true)
		e.SetLeader("m", true, time.Now().Add(2*time.Second))
		want(t, e, map[string]float64{`leader{target="m"}`: 1})
		time.Sleep(2*time.Second - time.Nanosecond)
		want(t, e, map[string]float64{`leader{target="m"}`: 1})
		time.Sleep(time.Nanosecond)
		want(t, e, map[string]float64{`leader{target="m"}`: 0})
		e.SetLeader("m", true, time.Now().Add(time.Second))
		want(t, e, map[string]float64{`leader{target="m"}`: 1})
	})
}

// TestWhatVanishedIsGoneFromTheNextScrape looks for everything that a target, a
// class or a rule leaves behind.
func TestWhatVanishedIsGoneFromTheNextScrape(t *testing.T) {
	t.Parallel()
	e := full(t)
	setFindings(e, "m", nil)
	if text := scrapeText(t, e); strings.Contains(text, "\nlocksteward_findings{") {
		t.Errorf("a finding that is over is shown:\n%s", grep(text, "locksteward_findings{"))
	}
	if text := scrapeText(t, e); !strings.Contains(text, `target="m"`) {
		t.Fatal("the target is not there: the test shows nothing")
	}
	e.RemoveTarget("m")
	if text := scrapeText(t, e); strings.Contains(text, `target="m"`) {
		t.Errorf("a target that is gone is shown:\n%s", grep(text, `target="m"`))
	}
	e = full(t)
	set := newExporterClasses(t, "jobs")
	e.SetClasses(set)
	setFindings(e, "m", nil)
	e.SetWatch("m", exporter.Watch{Mode: "tracking"})
	e.ObserveSweep(sweep(2))
	if text := scrapeText(t, e); strings.Contains(text, `class="orders"`) {
		t.Errorf("a class that is gone is shown:\n%s", grep(text, `class="orders"`))
	}
	e.ObserveSweep(sweep(3, lock("jobs", "jobs:1")))
	e.ObserveSweep(sweep(4))
	want(t, e, map[string]float64{`locks{class="jobs",library="token",target="m"}`: absent, `lock_acquires_total{class="jobs",target="m"}`: 1})
}
