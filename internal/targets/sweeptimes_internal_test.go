package targets

import (
	"testing"
	"time"

	"github.com/locksteward/locksteward"
)

func TestSweepsAreMissedByTheirSchedule(t *testing.T) {
	t.Parallel()
	t0 := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	overdue := func(after time.Time) time.Time { return after.Add(time.Minute) }
	var s sweepTimes
	check := func(after time.Duration, want bool) {
		t.Helper()
		if _, stale := s.at(t0.Add(after), overdue); stale != want {
			t.Errorf("after %s: stale is %t", after, stale)
		}
	}
	check(time.Hour, false) // not watched yet
	s.begin(t0)
	check(time.Minute+sweepSlack, false)
	check(time.Minute+sweepSlack+1, true) // the first one does not end
	whole := locksteward.Sweep{Duration: 10 * time.Second, Masters: []locksteward.MasterPass{{Node: "n", Complete: true}}}
	s.add(whole, t0.Add(time.Hour))
	check(time.Hour+time.Minute+20*time.Second+sweepSlack, false)
	check(time.Hour+time.Minute+20*time.Second+sweepSlack+1, true)
	s.add(locksteward.Sweep{Masters: []locksteward.MasterPass{{Node: "n"}}}, t0.Add(2*time.Hour)) // cut short
	check(2*time.Hour, true)
	if last, stale := s.at(t0.Add(24*time.Hour), func(time.Time) time.Time { return time.Time{} }); stale || !last.Equal(t0.Add(time.Hour)) {
		t.Errorf("without further dates: %s, %t", last, stale)
	}
}
