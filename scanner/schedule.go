package scanner

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/robfig/cron/v3"
)

// schedule says when sweeps begin.
type schedule struct {
	cron   cron.Schedule
	zone   *time.Location
	jitter time.Duration // 0: a tenth of the gap, at most maxJitter
}

// newSchedule reads Schedule and Timezone of c, which has its defaults.
func newSchedule(c Config) (schedule, error) {
	var errs []error
	zone, err := time.LoadLocation(c.Timezone)
	if err != nil {
		errs = append(errs, fmt.Errorf("timezone: must be an IANA name such as Europe/Berlin, got %q", c.Timezone))
		zone = time.UTC
	}
	parser := cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)
	parsed, err := parser.Parse(c.Schedule)
	switch {
	case err != nil:
		errs = append(errs, fmt.Errorf("schedule: got %q: %w; write five or six cron fields or @every 30s", c.Schedule, err))
	case parsed.Next(time.Now().In(zone)).IsZero():
		errs = append(errs, fmt.Errorf("schedule: %q never comes; write a date that exists", c.Schedule))
	}
	return schedule{cron: parsed, zone: zone, jitter: c.Jitter}, errors.Join(errs...)
}

// next returns the first time of the schedule after now, counted on from the
// time at which the last sweep was due (so that "every 30s" keeps its pace
// whatever a sweep takes), and how many times in between were skipped because
// the last sweep was still running.
func (s schedule) next(due, now time.Time) (next time.Time, skipped int) {
	if due.Sub(now) > time.Minute {
		// The clock was set back: by a date as long ago as that nothing was due yet, and
		// nothing would be until the clock is where it was.
		due = now
	}
	next = s.cron.Next(due.In(s.zone))
	if now.Sub(next) > time.Hour {
		// The clock was stepped or the process slept: what it missed is past.
		return s.cron.Next(now.In(s.zone)), 1
	}
	for !next.IsZero() && !next.After(now) {
		next = s.cron.Next(next)
		skipped++
	}
	return next, skipped
}

// delay returns the random time by which a sweep is late on purpose, given the
// time from one sweep to the next.
func (s schedule) delay(gap time.Duration) time.Duration {
	limit := s.jitter
	if limit == 0 {
		limit = min(gap/10, maxJitter)
	}
	if limit <= 0 {
		return 0
	}
	return rand.N(limit)
}
