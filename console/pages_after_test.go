package console

import (
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
)

// What can still be done after a release is offered, and what was done is not
// offered again.
func TestWhatFollowsIsOfferedOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		follow     locksteward.Act
		state      locksteward.RequestState
		undo, lift bool
	}{
		"nothing yet":    {undo: true, lift: true},
		"undone":         {follow: locksteward.ActUndo, state: locksteward.RequestReleased},
		"undo came late": {follow: locksteward.ActUndo, state: locksteward.RequestChanged, undo: true, lift: true},
		"lifted":         {follow: locksteward.ActLift, state: locksteward.RequestReleased, undo: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, "approver")
			done := pending()
			done.ID, done.State, done.FinishedAt = "r7", locksteward.RequestReleased, time.Now()
			done.Evidence.Undo, done.Evidence.Placeholder = time.Hour, time.Hour
			b.world.requests = []locksteward.Request{done}
			if c.state != "" {
				next := done
				next.ID, next.State, next.Evidence.Act, next.Evidence.Of = "r8", c.state, c.follow, "r7"
				b.world.requests = []locksteward.Request{next, done}
			}
			page := b.do("approver", "GET", "/requests/r7", "").body
			if got := strings.Contains(page, `action="/requests/r7/undo`); got != c.undo {
				t.Errorf("undo offered: %v, want %v", got, c.undo)
			}
			if got := strings.Contains(page, `action="/requests/r7/lift`); got != c.lift {
				t.Errorf("lift offered: %v, want %v", got, c.lift)
			}
			if got := strings.Contains(page, "It cannot be undone: it was already undone."); got != (name == "undone") {
				t.Errorf("said to be undone: %v", got)
			}
		})
	}
}

// A request that would release nothing says so beside the button, and where to request again.
func TestRequestThatWouldReleaseNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, "approver")
	a := b.do("approver", "GET", "/requests/r1", "")
	for _, want := range []string{"It would not be released: expiry.", `request again on <a href="/locks/one?`, `<button type="submit" class="second" data-key="a"`} {
		if !strings.Contains(a.body, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(a.body, "Waiters now") {
		t.Error("it counts waiters that nothing wakes")
	}
}

// A request that is over says who has the lock now: whether it helped.
func TestWhoHasTheLockAfterwards(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*locksteward.Request, *locksteward.Lock)
		want   string
	}{
		"the next holder": {func(_ *locksteward.Request, l *locksteward.Lock) {
			l.TokenDigest, l.Holder = "hmac-sha256:ff", locksteward.Holder{App: "worker", Host: "web-3"}
		}, "The lock now: worker on web-3 holds it, for ≥ 3s."},
		"nothing about the next": {func(_ *locksteward.Request, l *locksteward.Lock) { l.TokenDigest = "hmac-sha256:ff" }, "The lock now: another holder has it, for"},
		"the same hold":          {func(*locksteward.Request, *locksteward.Lock) {}, "The lock now: the same hold is there."},
		"nobody":                 {func(r *locksteward.Request, _ *locksteward.Lock) { r.Evidence.Key = "lock:gone" }, "The lock now: nobody holds it."},
		"under a placeholder":    {func(r *locksteward.Request, _ *locksteward.Lock) { r.Evidence.Act = locksteward.ActTakeOver }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, "viewer")
			done, l := pending(), aLock("lock:order:42", 3*time.Second)
			done.ID, done.State, done.FinishedAt, done.Evidence.Act = "r7", locksteward.RequestReleased, time.Now(), locksteward.ActRelease
			c.change(&done, &l)
			b.world.requests, b.world.locks = []locksteward.Request{done}, []locksteward.Lock{l}
			page := b.do("viewer", "GET", "/requests/r7", "").body
			if c.want == "" && strings.Contains(page, "The lock now") || !strings.Contains(page, c.want) {
				t.Errorf("%q is missing: %s", c.want, page)
			}
		})
	}
}
