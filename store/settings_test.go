package store_test

import (
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/store"
)

// A setting is kept over a restart, and its line of the audit trail with it.
func TestSettingsRoundTrip(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		if got, err := s.LoadSetting(t.Context(), "release_pauses"); err != nil || got != "" {
			t.Fatalf("of a new store: %q, %v", got, err)
		}
		for _, value := range []string{`{"all":{"by":"adm"}}`, `{}`} {
			if err := s.SaveSetting(t.Context(), "release_pauses", value, locksteward.Entry{Actor: "adm", Action: "release.pause"}); err != nil {
				t.Fatal(err)
			}
		}
		closeStore(t, s)
		s = p.open(t)
		if got, err := s.LoadSetting(t.Context(), "release_pauses"); err != nil || got != `{}` {
			t.Errorf("%q, %v", got, err)
		}
		lines, err := s.Entries(t.Context(), store.EntryQuery{Actor: "adm"})
		if err != nil || len(lines) != 2 {
			t.Errorf("%d lines, %v", len(lines), err)
		}
	})
}

// A setting is swapped only for what it was read as, and else nothing is written.
func TestSwapSetting(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		line := locksteward.Entry{Actor: "adm", Action: "release.pause"}
		for _, step := range []struct {
			was, value string
			swapped    bool
			now        string
		}{
			{"", "a", true, "a"},
			{"", "b", false, "a"},
			{"x", "b", false, "a"},
			{"a", "b", true, "b"},
			{"b", "", true, ""},
			{"", "c", true, "c"},
		} {
			swapped, err := s.SwapSetting(t.Context(), "pauses", step.was, step.value, line)
			if err != nil || swapped != step.swapped {
				t.Errorf("%+v: %v, %v", step, swapped, err)
			}
			if now, err := s.LoadSetting(t.Context(), "pauses"); err != nil || now != step.now {
				t.Errorf("%+v: %q is kept, %v", step, now, err)
			}
		}
		if lines, err := s.Entries(t.Context(), store.EntryQuery{Actor: "adm"}); err != nil || len(lines) != 4 {
			t.Errorf("%d lines, %v", len(lines), err)
		}
	})
}
