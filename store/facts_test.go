package store_test

import "testing"

// What a scanner and the rules know of a target is kept over a restart, one text
// each per target.
func TestFactsRoundTrip(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		if got, err := s.LoadFacts(t.Context(), "a"); err != nil || got != "" {
			t.Fatalf("of a new store: %q, %v", got, err)
		}
		for target, facts := range map[string]string{"a": `{"v":1}`, "b": "{}"} {
			if err := s.SaveFacts(t.Context(), target, facts); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.SaveFacts(t.Context(), "a", `{"v":1,"longest":5}`); err != nil {
			t.Fatal(err)
		}
		if err := s.SaveOrders(t.Context(), "a", `{"v":1,"pairs":[]}`); err != nil {
			t.Fatal(err)
		}
		closeStore(t, s)
		s = p.open(t)
		for target, want := range map[string]string{"a": `{"v":1,"longest":5}`, "b": "{}", "digest_key": ""} {
			if got, err := s.LoadFacts(t.Context(), target); err != nil || got != want {
				t.Errorf("%s: %q, %v", target, got, err)
			}
		}
		for target, want := range map[string]string{"a": `{"v":1,"pairs":[]}`, "b": ""} {
			if got, err := s.LoadOrders(t.Context(), target); err != nil || got != want {
				t.Errorf("orders of %s: %q, %v", target, got, err)
			}
		}
	})
}
