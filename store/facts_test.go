package store_test

import "testing"

// What a scanner knows of a target is kept over a restart, one text per target.
func TestFactsRoundTrip(t *testing.T) {
	t.Parallel()
	dsn := "sqlite:" + t.TempDir() + "/locksteward.db"
	s := openAt(t, dsn)
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
	closeStore(t, s)
	s = openAt(t, dsn)
	for target, want := range map[string]string{"a": `{"v":1,"longest":5}`, "b": "{}", "digest_key": ""} {
		if got, err := s.LoadFacts(t.Context(), target); err != nil || got != want {
			t.Errorf("%s: %q, %v", target, got, err)
		}
	}
}
