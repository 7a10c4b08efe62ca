package release_test

import (
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/release"
)

func TestPauseWindowCovers(t *testing.T) {
	t.Parallel()
	at := func(s string) time.Time {
		when, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	once := release.PauseWindow{Name: "sale", From: "2026-11-27T00:00:00+01:00", To: "2026-11-30T00:00:00+01:00"}
	night := release.PauseWindow{From: "22:00", To: "06:00", Days: []string{"Fri", "sat"}, Zone: "Europe/Berlin"}
	lunch := release.PauseWindow{From: "12:00", To: "13:00"}
	for _, c := range []struct {
		f    release.PauseWindow
		at   string
		want bool
	}{
		{once, "2026-11-26T22:59:59Z", false},
		{once, "2026-11-26T23:00:00Z", true},
		{once, "2026-11-29T22:59:59Z", true},
		{once, "2026-11-29T23:00:00Z", false},
		{night, "2026-11-27T20:59:00Z", false}, // Friday 21:59 in Berlin
		{night, "2026-11-27T21:00:00Z", true},
		{night, "2026-11-28T04:59:00Z", true}, // Saturday 05:59
		{night, "2026-11-28T05:00:00Z", false},
		{night, "2026-11-29T04:59:00Z", true}, // Sunday morning belongs to Saturday
		{night, "2026-11-29T22:00:00Z", false},
		{night, "2026-07-03T20:00:00Z", true}, // summer time
		{lunch, "2026-07-03T12:00:00Z", true},
		{lunch, "2026-07-03T13:00:00Z", false},
	} {
		if got := release.Covers(c.f, at(c.at)); got != c.want {
			t.Errorf("%+v at %s: %t", c.f, c.at, got)
		}
	}
}

func TestPauseWindowSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		f    release.PauseWindow
		want string
	}{
		{release.PauseWindow{}, "pause_windows[0].from: must be a time"},
		{release.PauseWindow{From: "2026-11-27T00:00:00Z", To: "12:00"}, "pause_windows[0].to: must be a time such as 2026"},
		{release.PauseWindow{From: "2026-11-27T00:00:00Z", To: "2026-11-26T00:00:00Z"}, "pause_windows[0].to: must be after"},
		{release.PauseWindow{From: "2026-11-27T00:00:00Z", To: "2026-11-28T00:00:00Z", Zone: "UTC"}, "pause_windows[0].days: belong"},
		{release.PauseWindow{From: "22:00", To: "25:00"}, "pause_windows[0].to: must be a time"},
		{release.PauseWindow{From: "22:00", To: "22:00"}, "pause_windows[0].to: must not be from"},
		{release.PauseWindow{From: "22:00", To: "23:00", Days: []string{"monday"}}, "pause_windows[0].days[0]: must be one of"},
		{release.PauseWindow{From: "22:00", To: "23:00", Zone: "Berlin"}, "pause_windows[0].zone: must be a time zone"},
	} {
		err := release.Config{PauseWindows: []release.PauseWindow{c.f}}.Validate()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.f, err, c.want)
		}
	}
}
