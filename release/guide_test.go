package release_test

import (
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/release"
)

// What is said before anybody decides is what a decision then comes to, and
// writes nothing.
func TestWhyNotApprove(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	e.put(t, "lock:teams:1", uuid, minute)
	r := e.request(t, ana, "lock:teams:1")
	before := len(e.refusals(t))
	for name, c := range map[string]struct {
		who  release.Actor
		want string
	}{
		"no role":  {ana, "role approver"},
		"no team":  {ben, "team:checkout"},
		"of them":  {release.Actor{Name: "dan", Roles: ben.Roles, Teams: []string{"checkout"}}, ""},
		"by name":  {cat, ""},
		"no body":  {release.Actor{}, "role approver"},
		"themself": {release.Actor{Name: "ANA", Roles: cat.Roles, Teams: []string{"checkout"}}, "is your own"},
	} {
		err := e.service.WhyNotApprove(c.who, r)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if got := len(e.refusals(t)); got != before {
		t.Errorf("%d refusals were written", got-before)
	}
	done := e.approve(t, cat, r)
	wantError(t, e.service.WhyNotApprove(cat, done), locksteward.ErrConflict, "final")
}

func TestPossible(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	e.put(t, "lock:three:1", uuid, minute)
	lock, _, err := e.locks.ReadLock(t.Context(), e.request(t, ana, "lock:three:1").Evidence.Target, "lock:three:1")
	if err != nil {
		t.Fatal(err)
	}
	if got := e.service.Possible(lock); got.Release != "" || got.Placeholder != "" {
		t.Errorf("possible: %+v", got)
	}
	if err := e.service.Pause(t.Context(), admin, release.PauseAll, time.Time{}, "drill"); err != nil {
		t.Fatal(err)
	}
	if got := e.service.Possible(lock); !strings.Contains(got.Release, "paused") {
		t.Errorf("while paused: %+v", got)
	}
	lock.Kind = locksteward.KindCandidate
	if got := e.service.Possible(lock); got.Release == "" {
		t.Error("a candidate can be released")
	}
}
