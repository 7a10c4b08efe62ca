package store_test

import (
	"path/filepath"
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/store"
)

// place is a database of a test's own.
type place struct {
	dsn      string
	postgres bool
}

// open opens the store that is there; each call is another process's view of it.
func (p place) open(t testing.TB) *store.Store {
	t.Helper()
	return openAt(t, p.dsn)
}

// forEachStore runs fn on a fresh database of each kind, in parallel with other
// tests. It comes first in a test: the databases are made before tests run beside
// each other, so that one server serves them all.
func forEachStore(t *testing.T, fn func(t *testing.T, p place)) {
	t.Helper()
	eachStore(t, (*testing.T).Parallel, fn)
}

// forEachStoreAlone is forEachStore for tests that measure: no other test of the package
// runs beside them.
func forEachStoreAlone(t *testing.T, fn func(t *testing.T, p place)) {
	t.Helper()
	eachStore(t, func(*testing.T) {}, fn)
}

func eachStore(t *testing.T, parallel func(*testing.T), fn func(t *testing.T, p place)) {
	t.Helper()
	var server string
	if !testing.Short() && testpg.Available() {
		server = testpg.Database(t)
	}
	parallel(t)
	t.Run("sqlite", func(t *testing.T) {
		parallel(t)
		fn(t, place{dsn: "sqlite:" + filepath.Join(t.TempDir(), "data", "locksteward.db")})
	})
	t.Run("postgres", func(t *testing.T) {
		parallel(t)
		if server == "" {
			server = testpg.Database(t) // skips, or fails, as it should
		}
		fn(t, place{dsn: server, postgres: true})
	})
}

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
	err := s.CreateRequest(t.Context(), req, []locksteward.Entry{entryOf(req)}, func(open *locksteward.Request) ([]locksteward.Entry, error) {
		t.Errorf("request %s is open for %q", open.ID, open.Evidence.Key)
		return nil, locksteward.ErrConflict
	})
	if err != nil {
		t.Fatal(err)
	}
}

func entryOf(req locksteward.Request) locksteward.Entry {
	return locksteward.Entry{
		At: req.CreatedAt, Actor: req.Requester, Action: "release.request", Target: req.Evidence.Target,
		Key: req.Evidence.Key, Subject: req.ID, Reason: req.Reason, Outcome: string(req.State),
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
