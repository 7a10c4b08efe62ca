package release

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Freeze is a time in which nothing is released without a person, and people are
// warned: once, from a day to a day, or again and again, between two times of
// day.
type Freeze struct {
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

func (f Freeze) validate() error {
	if _, err := time.Parse(time.RFC3339, f.From); err == nil {
		from, to, err := f.span()
		switch {
		case err != nil:
			return err
		case !from.Before(to):
			return fmt.Errorf("to: must be after from (%s), got %s", f.From, f.To)
		case len(f.Days) > 0 || f.Zone != "":
			return errors.New("days: belong to times of day, and from is a date with its own zone; remove days and zone, or write times such as 22:00")
		}
		return nil
	}
	for _, side := range []struct{ path, text string }{{"from", f.From}, {"to", f.To}} {
		if _, err := time.Parse(clockLayout, side.text); err != nil {
			return fmt.Errorf("%s: must be a time such as 2026-11-27T00:00:00Z or 22:00, got %q", side.path, side.text)
		}
	}
	if f.From == f.To {
		return fmt.Errorf("to: must not be from (%s); for all of a day write 00:00 and 23:59", f.From)
	}
	for i, d := range f.Days {
		if !slices.Contains(weekdays, strings.ToLower(d)) {
			return fmt.Errorf("days[%d]: must be one of %s, got %q", i, strings.Join(weekdays, " "), d)
		}
	}
	if _, err := time.LoadLocation(f.Zone); err != nil {
		return fmt.Errorf("zone: must be a time zone such as Europe/Berlin, got %q", f.Zone)
	}
	return nil
}

func (f Freeze) span() (from, to time.Time, err error) {
	if from, err = time.Parse(time.RFC3339, f.From); err != nil {
		return from, to, fmt.Errorf("from: must be a time such as 2026-11-27T00:00:00Z, got %q", f.From)
	}
	if to, err = time.Parse(time.RFC3339, f.To); err != nil {
		return from, to, fmt.Errorf("to: must be a time such as 2026-11-30T00:00:00Z, since from is one, got %q", f.To)
	}
	return from, to, nil
}

// covers says whether at is within a freeze that is valid.
func (f Freeze) covers(at time.Time) bool {
	if from, to, err := f.span(); err == nil {
		return !at.Before(from) && at.Before(to)
	}
	zone, err := time.LoadLocation(f.Zone)
	if err != nil {
		return true // validated long ago; in doubt nothing happens
	}
	at = at.In(zone)
	now, day := at.Format(clockLayout), at.Weekday()
	if f.From < f.To {
		return now >= f.From && now < f.To && f.on(day)
	}
	return now >= f.From && f.on(day) || now < f.To && f.on((day+6)%7)
}

func (f Freeze) on(day time.Weekday) bool {
	return len(f.Days) == 0 || slices.ContainsFunc(f.Days, func(d string) bool { return strings.EqualFold(d, weekdays[day]) })
}

// frozen returns the name of the freeze that holds at a time; "" if none does.
func frozen(list []Freeze, at time.Time) string {
	for _, f := range list {
		if f.covers(at) {
			if f.Name == "" {
				return f.From + " to " + f.To
			}
			return f.Name
		}
	}
	return ""
}
