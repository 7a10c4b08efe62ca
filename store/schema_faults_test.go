package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/store"
)

// newer is what a newer program does to a database that it opens.
func newer(t *testing.T, s *store.Store) {
	t.Helper()
	if err := s.Exec(t.Context(), `INSERT INTO schema_version (version, applied_at) VALUES (999, 0)`); err != nil {
		t.Fatal(err)
	}
}

// A database with a schema of another version is refused unchanged, with what to do.
func TestOtherSchemaIsRefused(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		create(t, s, newRequest("r-1", "lock:a"))
		newer(t, s)
		closeStore(t, s)
		for range 2 {
			_, err := store.Open(t.Context(), p.dsn)
			if !errors.Is(err, store.ErrOtherSchema) || !strings.Contains(err.Error(), "version 999") || !strings.Contains(err.Error(), "run the locksteward that wrote it") {
				t.Fatalf("got %v", err)
			}
		}
	})
}

// A newer program changes the schema while an older one works: the older one gets no
// lease any more, and with the end of the one that it has it writes nothing under it.
func TestNewerProgramBesideAnOlder(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		const ttl = 300 * time.Millisecond
		lease, err := s.AcquireLease(t.Context(), "orders", "old", "", ttl)
		if err != nil {
			t.Fatal(err)
		}
		held := s.Under(func(string) (store.Lease, bool) { return lease, true })
		newer(t, s)
		_, err = s.Heartbeat(t.Context(), store.Replica{ID: "old"}, ttl)
		if !errors.Is(err, store.ErrOtherSchema) || !strings.Contains(err.Error(), "run the locksteward that wrote it") {
			t.Errorf("renew: %v", err)
		}
		if _, err := s.AcquireLease(t.Context(), "other", "old", "", ttl); !errors.Is(err, store.ErrOtherSchema) {
			t.Errorf("acquire: %v", err)
		}
		for end := time.Now().Add(within); err == nil || !errors.Is(err, store.ErrLeaseLost); {
			if err = held.SaveFacts(t.Context(), "orders", "of the old one"); time.Now().After(end) {
				t.Fatalf("it writes on under its old lease: %v", err)
			}
		}
	})
}
