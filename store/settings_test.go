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
		if got, err := s.LoadSetting(t.Context(), "release_stops"); err != nil || got != "" {
			t.Fatalf("of a new store: %q, %v", got, err)
		}
		for _, value := range []string{`{"killed":true}`, `{}`} {
			if err := s.SaveSetting(t.Context(), "release_stops", value, locksteward.Entry{Actor: "adm", Action: "release.kill_switch"}); err != nil {
				t.Fatal(err)
			}
		}
		closeStore(t, s)
		s = p.open(t)
		if got, err := s.LoadSetting(t.Context(), "release_stops"); err != nil || got != `{}` {
			t.Errorf("%q, %v", got, err)
		}
		lines, err := s.Entries(t.Context(), store.EntryQuery{Actor: "adm"})
		if err != nil || len(lines) != 2 {
			t.Errorf("%d lines, %v", len(lines), err)
		}
	})
}
