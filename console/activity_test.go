package console

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

// The strip of an hour counts what happened in it: findings by severity, what happened to servers, releases. Nothing is drawn outside
// of it, and each severity stands on the one before.
func TestStrip(t *testing.T) {
	t.Parallel()
	now := at.Add(time.Hour)
	event := func(before time.Duration, rule, severity string) api.LockEvent {
		return api.LockEvent{At: now.Add(-before), Kind: "firing", Rule: rule, Severity: severity}
	}
	fired := []api.LockEvent{ // newest first
		event(-200*time.Millisecond, "ttl/none", "critical"), // the server's clock is ahead
		event(10*time.Second, "ttl/none", "critical"), event(20*time.Second, "hold/too-long", "warning"), event(30*time.Second, "ttl/none", "critical"),
		event(10*time.Minute, "server/restarted", "critical"), event(20*time.Minute, "server/failover", "info"), event(21*time.Minute, "server/failover", "info"),
		event(30*time.Minute, "ttl/too-long", "info"), event(2*time.Hour, "ttl/none", "critical"),
	}
	done := pending()
	done.State, done.FinishedAt = locksteward.RequestReleased, now.Add(-5*time.Minute)
	old, undone := done, done
	old.FinishedAt = now.Add(-90 * time.Minute)
	undone.Evidence.Act = locksteward.ActUndo
	got := newStrip("Last hour", "hour", now, time.Hour, time.Minute, fired, []locksteward.Request{done, undone, old})
	if want := "5 findings fired: 3 critical, 1 warning, 1 info; 1 restart; 2 failovers; 1 release"; got.Words != want {
		t.Errorf("got  %s\nwant %s", got.Words, want)
	}
	var bars []string
	for _, b := range got.Bars {
		bars = append(bars, fmt.Sprintf("%s %.0f-%.0f", b.Tone, b.Y, b.Y+b.H))
		if b.X < 0 || b.X+b.W > 1000 || b.Y < 0 || b.Y+b.H > stripHeight {
			t.Errorf("outside: %+v", b)
		}
	}
	if want := []string{"info 30-40", "critical 10-40", "warning 0-10"}; !slices.Equal(bars, want) {
		t.Errorf("got %q, want %q", bars, want)
	}
	for _, b := range slices.Concat(got.Servers, got.Releases) {
		if b.X < 0 || b.X+b.W > 1000 || b.Title == "" {
			t.Errorf("outside, or without words: %+v", b)
		}
	}
	day := newStrip("Last day", "day", now, 24*time.Hour, 15*time.Minute, fired, []locksteward.Request{done, undone, old})
	if want := "6 findings fired: 4 critical, 1 warning, 1 info; 1 restart; 2 failovers; 2 releases"; day.Words != want {
		t.Errorf("got  %s\nwant %s", day.Words, want)
	}
	if quiet := newStrip("Last hour", "hour", now, time.Hour, time.Minute, nil, nil); quiet.Words != "no finding fired" || len(quiet.Bars)+len(quiet.Servers)+len(quiet.Releases) > 0 {
		t.Errorf("nothing is drawn as %+v", quiet)
	}
}

// The overview has both strips and a line for each target, those that need a person first; without the store it says why it has no strip.
func TestOverviewSaysWhatHappened(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.world.fired = []api.LockEvent{{At: time.Now().Add(-5 * time.Minute), Kind: "firing", Rule: "ttl/none", Severity: "critical"}}
	b.world.targets = append(b.world.targets, api.Target{Name: "stock", Mode: "etcd", Reason: "connection refused", LastSweep: &api.Swept{At: at}})
	body := b.do("", "GET", "/", "").body
	for _, want := range []string{
		"Last hour <small>1 critical finding fired</small>", "Last day <small>1 critical finding fired</small>", "2.5 % of its server", `aria-label="Findings that fired, by time and severity"`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is missing\n%s", want, body)
		}
	}
	targets := body[strings.Index(body, `id="targets-title"`):]
	if down, up := strings.Index(targets, "stock"), strings.Index(targets, "orders"); down < 0 || up < down {
		t.Error("the target that is down is not the first")
	}
	b.world.firedFails = api.NewProblem(api.CodeUnavailable, "the store cannot be read")
	a := b.do("", "GET", "/", "")
	if a.status != http.StatusOK || !strings.Contains(a.body, "What happened lately is not known:") || strings.Contains(a.body, "Last hour") || !strings.Contains(a.body, "The lock never expires") {
		t.Errorf("without the store: status %d\n%s", a.status, a.body)
	}
	b.world.firedFails = errors.New("secret of the store")
	if a := b.do("", "GET", "/", ""); a.status != http.StatusOK || strings.Contains(a.body, "secret") {
		t.Errorf("an error nobody knows: status %d", a.status)
	}
}
