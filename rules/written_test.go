package rules

import (
	"slices"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// The time in a lock's value makes rules fire and calls nobody dead: neither by an
// expression nor by a rule of dead_when. What was observed does.
func TestNoDeathByTheClockOfTheHolder(t *testing.T) {
	t.Parallel()
	classes := []class.Class{{
		Name: "jobs", Match: []string{"job:*"}, Expect: time.Minute,
		DeadWhen: []string{"hold/too-long", "custom/old", "lock.age > duration('30m')"},
	}}
	e := newEngine(t, Config{{Rule: "custom/old", When: "lock.age > duration('30m')"}}, classes)
	shedlock := func(at time.Time) locksteward.Lock {
		return lockAt("job:1", at, ofClass("jobs"), func(l *locksteward.Lock) {
			l.Library, l.Acquired, l.TTL = "shedlock", t0.Add(-time.Hour), 2*time.Hour
		})
	}
	young := shedlock(after(time.Second))
	wantBrief(t, evaluateLocks(e, "redis", after(time.Second), []locksteward.Lock{young}, nil),
		"custom/old firing warning job:1", "hold/too-long firing warning job:1")
	if got := e.Firing(young); len(got) != 0 {
		t.Errorf("after a second %v may call it dead", got)
	}
	if got := e.DeadWhen(young); len(got) != 0 {
		t.Errorf("after a second it is dead: %v", got)
	}
	old := shedlock(after(31 * time.Minute))
	wantBrief(t, evaluateLocks(e, "redis", after(31*time.Minute), []locksteward.Lock{old}, nil))
	if got := e.Firing(old); !slices.Equal(got, []string{"custom/old", "hold/too-long"}) {
		t.Errorf("seen for 31 minutes only %v may call it dead", got)
	}
	if got := e.DeadWhen(old); len(got) != 1 {
		t.Errorf("seen for 31 minutes it is not dead: %v", got)
	}
}
