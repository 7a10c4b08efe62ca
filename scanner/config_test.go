package scanner

import (
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/locksteward/locksteward/internal/pace"
)

func TestConfigReadsAndReports(t *testing.T) {
	t.Parallel()
	var c Config
	text := "schedule: '0 */5 * * * *'\ntimezone: Europe/Berlin\npace: {idle: 20%, busy: 2.5%}\ntimeout: 1m\njitter: 1s\n"
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	if c.Pace != (pace.Config{Idle: 0.2, Busy: 0.025}) || c.Timeout != time.Minute || c.Validate() != nil {
		t.Errorf("%+v: %v", c, c.Validate())
	}
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	bad := Config{Schedule: "sometimes", Timezone: "Mars/Olympus", Jitter: -1, Pace: pace.Config{Idle: 3}, Timeout: 1}
	err := bad.Validate()
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		`timezone: must be an IANA name such as Europe/Berlin, got "Mars/Olympus"`, `schedule: got "sometimes"`, "jitter: ",
		"pace.idle: must be between 0.01% and 80%, got 300%", "timeout: must be at least 1s, got 1ns",
	} {
		if !strings.Contains("\n"+err.Error(), "\n"+want) {
			t.Errorf("no line begins with %q in:\n%v", want, err)
		}
	}
	if err := (Config{Schedule: "0 0 30 2 *"}).Validate(); err == nil || !strings.Contains(err.Error(), "never comes") {
		t.Errorf("30 February: %v", err)
	}
}

func mustSchedule(t *testing.T, c Config) schedule {
	t.Helper()
	s, err := newSchedule(c.withDefaults())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestScheduleKeepsItsPace(t *testing.T) {
	t.Parallel()
	s := mustSchedule(t, Config{Schedule: "@every 30s"})
	due := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	next, skipped := s.next(due, due.Add(25*time.Second))
	if want := due.Add(30 * time.Second); !next.Equal(want) || skipped != 0 {
		t.Errorf("after a sweep of 25s: %s, %d skipped", next, skipped)
	}
	next, skipped = s.next(due, due.Add(95*time.Second))
	if want := due.Add(120 * time.Second); !next.Equal(want) || skipped != 3 {
		t.Errorf("after a sweep of 95s: %s, %d skipped, want %s and 3", next, skipped, want)
	}
	now := due.Add(100 * time.Hour)
	next, _ = s.next(due, now)
	if next.Before(now) || next.After(now.Add(30*time.Second)) {
		t.Errorf("after a long sleep: %s", next)
	}
}

// A clock that is set back by an hour keeps no sweep waiting until it is where it was.
func TestScheduleAfterTheClockWentBack(t *testing.T) {
	t.Parallel()
	due := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	now := due.Add(-time.Hour)
	for schedule, most := range map[string]time.Duration{"@every 30s": 30 * time.Second, "*/5 * * * *": 5 * time.Minute} {
		next, skipped := mustSchedule(t, Config{Schedule: schedule}).next(due, now)
		if !next.After(now) || next.After(now.Add(most)) || skipped != 0 {
			t.Errorf("%s: %s, %d skipped", schedule, next, skipped)
		}
	}
}

func TestScheduleReadsItsZone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ schedule, zone, after, want string }{
		{"0 3 * * *", "Europe/Berlin", "2026-01-01T00:00:00Z", "2026-01-01T02:00:00Z"},
		{"0 3 * * *", "Asia/Shanghai", "2026-01-01T00:00:00Z", "2026-01-01T19:00:00Z"},
		{"30 0 3 * * *", "", "2026-01-01T00:00:00Z", "2026-01-01T03:00:30Z"},
		{"@hourly", "", "2026-01-01T00:10:00Z", "2026-01-01T01:00:00Z"},
		// Half past two does not exist on that night in Berlin.
		{"30 2 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", "2026-03-30T00:30:00Z"},
		// And it comes twice on this one: the first counts.
		{"30 2 * * *", "Europe/Berlin", "2026-10-24T22:00:00Z", "2026-10-25T00:30:00Z"},
	} {
		after, err := time.Parse(time.RFC3339, c.after)
		if err != nil {
			t.Fatal(err)
		}
		next, _ := mustSchedule(t, Config{Schedule: c.schedule, Timezone: c.zone}).next(after, after)
		if got := next.UTC().Format(time.RFC3339); got != c.want {
			t.Errorf("%q in %q after %s: %s, want %s", c.schedule, c.zone, c.after, got, c.want)
		}
	}
}

func TestJitterIsBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ jitter, gap, limit time.Duration }{
		{0, 30 * time.Second, 3 * time.Second}, {0, time.Hour, 5 * time.Second}, {time.Second, time.Hour, time.Second}, {0, 0, 0},
	} {
		s := mustSchedule(t, Config{Jitter: c.jitter})
		for range 200 {
			if d := s.delay(c.gap); d < 0 || d > c.limit {
				t.Fatalf("jitter %s, gap %s: late by %s", c.jitter, c.gap, d)
			}
		}
	}
}
