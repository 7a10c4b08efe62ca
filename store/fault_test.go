package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/store"
)

func impatient(t *testing.T, dsn string, wait time.Duration) *store.Store {
	t.Helper()
	s, err := store.OpenImpatient(t.Context(), dsn, wait)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// away checks that a call fails as it should while the server is away.
func away(t *testing.T, err error, op string) {
	t.Helper()
	e, ok := errors.AsType[*store.Error](err)
	if !ok || !errors.Is(err, store.ErrAway) || e.Op != op || !strings.Contains(e.Hint, "check that PostgreSQL runs") {
		t.Errorf("got %v", err)
	}
}

// A server that is killed and comes back: clear errors meanwhile, nothing half
// written, and the pools recover without help.
func TestServerIsKilledAndComesBack(t *testing.T) {
	t.Parallel()
	server := testpg.Start(t)
	s := openAt(t, server.DSN())
	create(t, s, newRequest("r-1", "lock:a"))
	server.Kill()
	away(t, s.AppendEntries(t.Context(), locksteward.Entry{Action: "lost"}), "append audit entry")
	_, err := s.GetRequest(t.Context(), "r-1")
	away(t, err, "read request")
	_, err = s.Verify(t.Context())
	away(t, err, "verify audit trail")
	began := time.Now()
	for range 100 {
		away(t, s.SaveFacts(t.Context(), "orders", "lost"), "save facts")
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("100 calls to a server that is away took %s", took)
	}
	if _, err := store.Open(t.Context(), server.DSN()); !errors.Is(err, store.ErrAway) {
		t.Errorf("away at the start: %v", err)
	}
	server.Restart()
	testredis.Eventually(t, within, func() bool {
		return s.AppendEntries(t.Context(), locksteward.Entry{Action: "after"}) == nil
	}, "the store does not recover")
	verified(t, s, 2)
	if facts, err := s.LoadFacts(t.Context(), "orders"); err != nil || facts != "" {
		t.Errorf("facts %q, %v", facts, err)
	}
}

// A server that stops without a word: the first call waits for so long and no
// longer, those behind it not at all, and Close does not hang.
func TestServerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	server := testpg.Start(t)
	const wait = 2 * time.Second // in which a slow machine creates the schema
	s := impatient(t, server.DSN(), wait)
	create(t, s, newRequest("r-1", "lock:a"))
	server.Pause()
	began := time.Now()
	away(t, s.AppendEntries(t.Context(), locksteward.Entry{Action: "lost"}), "append audit entry")
	first := time.Since(began)
	began = time.Now()
	for range 50 {
		_, err := s.ListRequests(t.Context(), nil, "", 0)
		away(t, err, "list requests")
	}
	if rest := time.Since(began); first > 10*wait || rest > 10*wait {
		t.Errorf("the first call took %s, 50 more %s", first, rest)
	}
	second, err := store.OpenImpatient(t.Context(), server.DSN(), wait)
	if !errors.Is(err, store.ErrAway) || second != nil {
		t.Errorf("opening it: %v", err)
	}
	server.Resume()
	testredis.Eventually(t, within, func() bool {
		_, err := s.Verify(t.Context())
		return err == nil
	}, "the store does not recover")
	verified(t, s, 1)
	server.Pause()
	if s.AppendEntries(t.Context(), locksteward.Entry{Action: "lost"}) == nil {
		t.Error("written to a server that stands")
	}
	began = time.Now()
	closeStore(t, s)
	if took := time.Since(began); took > 10*wait {
		t.Errorf("Close took %s", took)
	}
	server.Resume()
}

// Writers at work while the server is killed, again and again: what was reported
// written is there, what failed is not, and what is unsure says so.
func TestNoWriteIsHalfDoneWhenTheServerDies(t *testing.T) {
	t.Parallel()
	server := testpg.Start(t)
	s := openAt(t, server.DSN())
	const writers = 4
	var mu sync.Mutex
	fate := map[string]error{}
	for round := range 3 {
		ctx, stop := context.WithCancel(t.Context())
		var group sync.WaitGroup
		for w := range writers {
			group.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					id := fmt.Sprintf("%d-%d-%d", round, w, n)
					m := message(id, id)
					err := s.Append(context.Background(), store.Change{Entries: []locksteward.Entry{{Action: "w", Subject: id}}, Notifications: []locksteward.Notification{m}})
					mu.Lock()
					fate[id] = err
					mu.Unlock()
					if err != nil {
						return
					}
				}
			})
		}
		testredis.Eventually(t, within, func() bool { mu.Lock(); defer mu.Unlock(); return len(fate) > 40*(round+1) }, "no writes")
		server.Kill()
		stop()
		server.Restart()
		group.Wait()
		testredis.Eventually(t, within, func() bool { _, err := s.Head(t.Context()); return err == nil }, "the store does not recover")
	}
	entries, err := s.Stored(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, e := range entries {
		there[e.Subject] = true
	}
	messages, err := s.Notifications(t.Context(), store.NotificationQuery{Limit: 1 << 20})
	if err != nil || len(messages) != len(entries) {
		t.Errorf("%d messages with %d entries, %v", len(messages), len(entries), err)
	}
	failed, unsure := 0, 0
	for id, err := range fate {
		switch {
		case err == nil && !there[id]:
			t.Errorf("%s was reported and is not there", id)
		case errors.Is(err, store.ErrUnsure):
			unsure++
		case err != nil && there[id]:
			t.Errorf("%s failed and is there: %v", id, err)
		case err != nil:
			failed++
		}
	}
	t.Logf("%d writes, %d failed, %d unsure", len(fate), failed, unsure)
	verified(t, s, int64(len(entries)))
}

// Another session that keeps the writers' lock, or a server that takes no writes.
func TestServerThatTakesNoWrites(t *testing.T) {
	dsn := testpg.Database(t)
	t.Parallel()
	s := impatient(t, dsn, 4*time.Second)
	create(t, s, newRequest("r-1", "lock:a"))
	// A store would lose the lock after 1.5 s, which this may take on a slow machine.
	other, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.WithoutCancel(t.Context()))
	held, err := other.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := held.Exec(t.Context(), store.BeginPostgres); err != nil {
		t.Fatal(err)
	}
	err = s.AppendEntries(t.Context(), locksteward.Entry{Action: "test"})
	if !errors.Is(err, store.ErrBusy) || !strings.Contains(err.Error(), "pg_stat_activity") {
		t.Errorf("got %v", err)
	}
	// What belongs to a target, and what only reads, does not wait for that.
	if err := s.SaveFacts(t.Context(), "orders", "{}"); err != nil {
		t.Error(err)
	}
	if _, err := s.GetRequest(t.Context(), "r-1"); err != nil {
		t.Error(err)
	}
	if err := held.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.AppendEntries(t.Context(), locksteward.Entry{Action: "test"}); err != nil {
		t.Error(err)
	}
	if err := s.Exec(t.Context(), `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$`); err != nil {
		t.Fatal(err)
	}
	readOnly := openAt(t, dsn) // which is up to date and needs no write
	err = readOnly.AppendEntries(t.Context(), locksteward.Entry{Action: "test"})
	if !errors.Is(err, store.ErrReadOnly) || !strings.Contains(err.Error(), "target_session_attrs=read-write") {
		t.Errorf("got %v", err)
	}
	verified(t, readOnly, 2)
}

// Eight processes write one trail.
func TestManyProcessesWriteOneTrail(t *testing.T) {
	dsn := testpg.Database(t)
	t.Parallel()
	const processes, each = 8, 25
	first := openAt(t, dsn)
	create(t, first, newRequest("r-1", "lock:a"))
	var group sync.WaitGroup
	for i := range processes {
		s := openAt(t, dsn)
		group.Go(func() {
			for n := range each {
				_, err := s.UpdateRequest(context.Background(), "r-1", func(r *locksteward.Request) ([]locksteward.Entry, error) {
					r.WaitersWoken++
					return []locksteward.Entry{{Actor: fmt.Sprint(i), Action: "test", Subject: fmt.Sprint(n)}, {Action: "second"}}, nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	got, err := first.GetRequest(t.Context(), "r-1")
	if err != nil || got.WaitersWoken != processes*each {
		t.Errorf("%d increments kept of %d, %v", got.WaitersWoken, processes*each, err)
	}
	verified(t, first, 1+2*processes*each)
}
