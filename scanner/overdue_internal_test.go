package scanner

import (
	"testing"
	"time"
)

func TestOverdueFollowsTheSchedule(t *testing.T) {
	t.Parallel()
	friday := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	for schedule, want := range map[string]time.Time{
		"@every 30s":            friday.Add(time.Minute + 3*time.Second),
		"0 9 * * 1-5":           friday.AddDate(0, 0, 4).Add(maxJitter), // Monday, then Tuesday
		"*/10 * * * *":          friday.Add(20*time.Minute + min(time.Minute, maxJitter)),
		"0 0 9 21 11 *":         time.Date(2027, 11, 21, 9, 0, 0, 0, time.UTC).Add(maxJitter),
		"0 0 1 30 2 *":          {}, // never comes
		"@every 1s":             friday.Add(2*time.Second + 100*time.Millisecond),
		"CRON_TZ=UTC 0 * * * *": friday.Add(2*time.Hour + maxJitter),
	} {
		plan, err := newSchedule(Config{Schedule: schedule, Timezone: "UTC"})
		if err != nil && !want.IsZero() {
			t.Fatal(err)
		}
		s := &Scanner{schedule: plan}
		if got := s.Overdue(friday); !got.Equal(want) {
			t.Errorf("%s: %s, want %s", schedule, got, want)
		}
	}
	plan, err := newSchedule(Config{Schedule: "@every 30s", Timezone: "UTC", Jitter: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if got := (&Scanner{schedule: plan}).Overdue(friday); !got.Equal(friday.Add(80 * time.Second)) {
		t.Errorf("with its own jitter: %s", got)
	}
}
