package release

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// PauseWindow is a time in which automatic releases are paused, and people are
// warned: once, from a day to a day, or again and again, between two times of
// day.
type PauseWindow struct {
	// Name says why, such as "black friday".
	Name string `yaml:"name"`
	// From and To are both RFC 3339 ("2026-11-27T00:00:00+01:00"), or both times of
	// day ("22:00"); a To before From is on the next day.
	From string `yaml:"from"`
	To   string `yaml:"to"`
	// Days are those on which a time of day begins ("mon" to "sun"); none is
	// every day.
	Days []string `yaml:"days"`
	// Zone is the time zone of times of day, such as "Europe/Berlin"; "" is UTC.
	Zone string `yaml:"zone"`
}

const clockLayout = "15:04"

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

func (w PauseWindow) validate() error {
	if _, err := time.Parse(time.RFC3339, w.From); err == nil {
		from, to, err := w.span()
		switch {
		case err != nil:
			return err
		case !from.Before(to):
			return fmt.Errorf("to: must be after from (%s), got %s", w.From, w.To)
		case len(w.Days) > 0 || w.Zone != "":
			return errors.New("days: belong to times of day, and from is a date with its own zone; remove days and zone, or write times such as 22:00")
		}
		return nil
	}
	for _, side := range []struct{ path, text string }{{"from", w.From}, {"to", w.To}} {
		if _, err := time.Parse(clockLayout, side.text); err != nil {
			return fmt.Errorf("%s: must be a time such as 2026-11-27T00:00:00Z or 22:00, got %q", side.path, side.text)
		}
	}
	if w.From == w.To {
		return fmt.Errorf("to: must not be from (%s); for all of a day write 00:00 and 23:59", w.From)
	}
	for i, d := range w.Days {
		if !slices.Contains(weekdays, strings.ToLower(d)) {
			return fmt.Errorf("days[%d]: must be one of %s, got %q", i, strings.Join(weekdays, " "), d)
		}
	}
	if _, err := time.LoadLocation(w.Zone); err != nil {
		return fmt.Errorf("zone: must be a time zone such as Europe/Berlin, got %q", w.Zone)
	}
	return nil
}

func (w PauseWindow) span() (from, to time.Time, err error) {
	if from, err = time.Parse(time.RFC3339, w.From); err != nil {
		return from, to, fmt.Errorf("from: must be a time such as 2026-11-27T00:00:00Z, got %q", w.From)
	}
	if to, err = time.Parse(time.RFC3339, w.To); err != nil {
		return from, to, fmt.Errorf("to: must be a time such as 2026-11-30T00:00:00Z, since from is one, got %q", w.To)
	}
	return from, to, nil
}

// covers says whether at is within a valid window.
func (w PauseWindow) covers(at time.Time) bool {
	if from, to, err := w.span(); err == nil {
		return !at.Before(from) && at.Before(to)
	}
	zone, err := time.LoadLocation(w.Zone)
	if err != nil {
		return true // validated long ago; in doubt nothing happens
	}
	at = at.In(zone)
	now, day := at.Format(clockLayout), at.Weekday()
	if w.From < w.To {
		return now >= w.From && now < w.To && w.on(day)
	}
	return now >= w.From && w.on(day) || now < w.To && w.on((day+6)%7)
}

func (w PauseWindow) on(day time.Weekday) bool {
	return len(w.Days) == 0 || slices.ContainsFunc(w.Days, func(d string) bool { return strings.EqualFold(d, weekdays[day]) })
}

// pauseWindow returns the name of the window that holds at a time; "" if none does.
func pauseWindow(list []PauseWindow, at time.Time) string {
	for _, w := range list {
		if w.covers(at) {
			if w.Name == "" {
				return w.From + " to " + w.To
			}
			return w.Name
		}
	}
	return ""
}
