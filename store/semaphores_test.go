package store_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/store"
)

// Another replica stands still with the lock that orders writers: of those that write
// here one waits for it, and this replica goes on saying that it is there, takes leases
// and writes what needs no order.
func TestWritersBehindAFrozenReplica(t *testing.T) {
	t.Parallel()
	dsn := testpg.Database(t)
	s := openAt(t, dsn)
	other, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.WithoutCancel(t.Context()))
	frozen, err := other.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := frozen.Exec(t.Context(), store.BeginPostgres); err != nil {
		t.Fatal(err)
	}

	const writers = 12
	var writing sync.WaitGroup
	for range writers {
		writing.Go(func() {
			if err := s.AppendEntries(t.Context(), locksteward.Entry{Action: "w"}); err != nil {
				t.Error(err)
			}
		})
	}
	watcher, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Close(context.WithoutCancel(t.Context()))
	waiting := func() (n int) {
		t.Helper()
		err := watcher.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event = 'advisory'`).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	testredis.Eventually(t, within, func() bool { return waiting() > 0 }, "nobody waits for the lock")
	bound, cancel := context.WithTimeout(t.Context(), 3*time.Second) // less than a writer waits for the lock
	defer cancel()
	for i := range 20 {
		members, err := s.Heartbeat(bound, store.Replica{ID: "r1", Name: "r1"}, time.Minute)
		if err != nil || len(members.Replicas) != 1 {
			t.Fatalf("beat %d: %+v, %v", i, members, err)
		}
	}
	if _, err := s.AcquireLease(bound, "orders", "r1", "", time.Minute); err != nil {
		t.Error(err)
	}
	if err := s.SaveFacts(bound, "orders", "facts"); err != nil {
		t.Error(err)
	}
	if n := waiting(); n != 1 {
		t.Errorf("%d connections wait for the lock: each of them would get it in its turn", n)
	}
	if err := frozen.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	writing.Wait()
	verified(t, s, writers)
}
