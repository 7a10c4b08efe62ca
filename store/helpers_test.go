package store_test

import (
	"path/filepath"
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/store"
)

func openAt(t testing.TB, dsn string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	// A second Close of a test that closed early is harmless but an error.
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func openFile(t testing.TB) *store.Store {
	t.Helper()
	return openAt(t, "sqlite:"+filepath.Join(t.TempDir(), "data", "locksteward.db"))
}

func closeStore(t testing.TB, s *store.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// create stores req with one entry and expects no open request beside it.
func create(t testing.TB, s *store.Store, req locksteward.Request) {
	t.Helper()
	entry := locksteward.Entry{
		At: req.CreatedAt, Actor: req.Requester, Action: "release.request", Target: req.Evidence.Target,
		Key: req.Evidence.Key, Subject: req.ID, Reason: req.Reason, Outcome: string(req.State),
	}
	err := s.CreateRequest(t.Context(), req, []locksteward.Entry{entry}, func(open *locksteward.Request) ([]locksteward.Entry, error) {
		t.Errorf("request %s is open for %q", open.ID, open.Evidence.Key)
		return nil, locksteward.ErrConflict
	})
	if err != nil {
		t.Fatal(err)
	}
}

// verified checks the chain and its length.
func verified(t testing.TB, s *store.Store, want int64) {
	t.Helper()
	got, err := s.Verify(t.Context())
	if err != nil || got != want {
		t.Fatalf("Verify = %d, %v; want %d entries", got, err, want)
	}
}
