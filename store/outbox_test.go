package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/store"
)

// within is how long an event may take on a loaded machine.
const within = 20 * time.Second

func message(id, ordering string) locksteward.Notification {
	return locksteward.Notification{ID: id, Receiver: "ops", Ordering: ordering, EventID: "e-" + id, Target: "orders", Body: []byte(id + "\x00\xff")}
}

func enqueue(t *testing.T, s *store.Store, messages ...locksteward.Notification) {
	t.Helper()
	if err := s.Append(t.Context(), store.Change{Notifications: messages}); err != nil {
		t.Fatal(err)
	}
}

func claim(t *testing.T, s *store.Store, receiver string, limit int) []locksteward.Notification {
	t.Helper()
	got, err := s.Claim(t.Context(), receiver, time.Minute, limit)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func ids(messages []locksteward.Notification) []string {
	var out []string
	for _, m := range messages {
		out = append(out, m.ID)
	}
	return out
}

// The life of messages: in order per fingerprint, one in flight, retried, given
// up, replayed, forgotten.
func TestOutbox(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		other := message("other", "f1")
		other.Receiver = "chat"
		late := message("late", "")
		late.Delay = time.Hour
		enqueue(t, s, message("a1", "f1"), message("b1", "f2"), message("a2", "f1"), other, message("c", ""), late)
		enqueue(t, s, message("a1", "f1"), message("a3", "f1"), message("a3", "f1")) // what it has it does not take again

		got := claim(t, s, "ops", 10)
		if !slices.Equal(ids(got), []string{"a1", "b1", "c"}) {
			t.Fatalf("claimed %v", ids(got))
		}
		a1 := got[0]
		if a1.Attempts != 1 || string(a1.Body) != "a1\x00\xff" || a1.EventID != "e-a1" || a1.Target != "orders" || a1.Seq != 1 || a1.CreatedAt.IsZero() {
			t.Errorf("%+v", a1)
		}
		if more := claim(t, s, "ops", 10); len(more) != 0 {
			t.Errorf("claimed twice: %v", ids(more))
		}
		// One that waits for another try holds up its own kind alone.
		if err := s.Retry(t.Context(), a1, errors.New("503 "+strings.Repeat("x", 5000)), time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := s.Delivered(t.Context(), got[1]); err != nil {
			t.Fatal(err)
		}
		if err := s.Delivered(t.Context(), got[1]); !errors.Is(err, locksteward.ErrClaimLost) {
			t.Errorf("delivered twice: %v", err)
		}
		if err := s.DeadLetter(t.Context(), a1, nil); !errors.Is(err, locksteward.ErrClaimLost) {
			t.Errorf("word without a claim: %v", err)
		}
		if more := claim(t, s, "ops", 10); len(more) != 0 {
			t.Errorf("ahead of one that is tried again: %v", ids(more))
		}
		if wait, ok, err := s.NextDue(t.Context(), "ops"); err != nil || !ok || wait < 30*time.Second || wait > time.Minute {
			t.Errorf("next in %s, %t, %v; want when the claim on c ends", wait, ok, err)
		}
		if err := s.Exec(t.Context(), `UPDATE outbox SET next_at = 0 WHERE id = 'a1'`); err != nil {
			t.Fatal(err)
		}
		got = claim(t, s, "ops", 10)
		if !slices.Equal(ids(got), []string{"a1"}) || got[0].Attempts != 2 || !strings.HasPrefix(got[0].LastError, "503 x") || len(got[0].LastError) > 1024 {
			t.Fatalf("%+v", got)
		}
		// Given up, those behind it go on.
		if err := s.DeadLetter(t.Context(), got[0], errors.New("410 gone")); err != nil {
			t.Fatal(err)
		}
		got = claim(t, s, "ops", 1)
		if !slices.Equal(ids(got), []string{"a2"}) {
			t.Fatalf("claimed %v", ids(got))
		}
		backlog, err := s.Backlogs(t.Context())
		if err != nil || len(backlog) != 2 || backlog[0].Receiver != "chat" || backlog[0].Waiting != 1 || backlog[1].Waiting != 4 || backlog[1].Dead != 1 || backlog[1].Oldest <= 0 {
			t.Errorf("%+v, %v", backlog, err)
		}

		dead, err := s.Notifications(t.Context(), store.NotificationQuery{State: locksteward.NotificationDead})
		if err != nil || !slices.Equal(ids(dead), []string{"a1"}) || dead[0].LastError != "410 gone" || dead[0].DoneAt.IsZero() {
			t.Fatalf("%+v, %v", dead, err)
		}
		n, err := s.RetryDead(t.Context(), store.NotificationQuery{Receiver: "ops"}, locksteward.Entry{Actor: "ana", Action: "message.replay"})
		if err != nil || n != 1 {
			t.Fatalf("replayed %d, %v", n, err)
		}
		if n, err := s.RetryDead(t.Context(), store.NotificationQuery{}, locksteward.Entry{Action: "message.replay"}); err != nil || n != 0 {
			t.Errorf("replayed %d of none, %v", n, err)
		}
		verified(t, s, 1)
		if got := claim(t, s, "ops", 10); !slices.Equal(ids(got), []string{"a1"}) || got[0].Attempts != 1 {
			t.Errorf("after the replay %+v", got)
		}

		// What is too young is not given up, and a receiver that works again need not wait.
		if n, err := s.DeadLetterAll(t.Context(), "chat", time.Hour, errors.New("too old")); err != nil || n != 0 {
			t.Errorf("buried %d, %v", n, err)
		}
		if err := s.Exec(t.Context(), `UPDATE outbox SET next_at = next_at + 3600000000 WHERE id = 'other'`); err != nil {
			t.Fatal(err)
		}
		if got := claim(t, s, "chat", 1); len(got) != 0 {
			t.Errorf("claimed what is due in an hour: %v", ids(got))
		}
		if err := s.RetryNow(t.Context(), "chat"); err != nil {
			t.Fatal(err)
		}
		if wait, ok, err := s.NextDue(t.Context(), "chat"); err != nil || !ok || wait != 0 {
			t.Errorf("next in %s, %t, %v", wait, ok, err)
		}
		if got, err := s.Notifications(t.Context(), store.NotificationQuery{ID: "other"}); err != nil || !slices.Equal(ids(got), []string{"other"}) {
			t.Errorf("%v, %v", got, err)
		}

		// A receiver that is gone leaves nothing waiting, and what is done is forgotten.
		if n, err := s.DeadLetterAll(t.Context(), "chat", 0, errors.New("receiver removed")); err != nil || n != 1 {
			t.Errorf("buried %d, %v", n, err)
		}
		if _, ok, err := s.NextDue(t.Context(), "chat"); err != nil || ok {
			t.Errorf("something is due: %v", err)
		}
		if n, err := s.PruneNotifications(t.Context(), time.Hour, time.Hour); err != nil || n != 0 {
			t.Errorf("pruned %d, %v; nothing is old", n, err)
		}
		if n, err := s.PruneNotifications(t.Context(), -time.Hour, time.Hour); err != nil || n != 1 {
			t.Errorf("pruned %d, %v; want b1", n, err)
		}
		enqueue(t, s, message("z", ""))
		if last, err := s.Notifications(t.Context(), store.NotificationQuery{Limit: 1}); err != nil || last[0].Seq != 8 {
			t.Errorf("%+v, %v: numbers are not given twice", last, err)
		}
		if err := s.Append(t.Context(), store.Change{Notifications: []locksteward.Notification{{ID: "x"}}}); err == nil {
			t.Error("a message to nobody")
		}
		if _, err := s.Claim(t.Context(), "ops", 0, 1); err == nil {
			t.Error("a claim for no time")
		}
	})
}

// A claim that ended is another's: nothing is lost with a sender that died, and its
// late word is refused once somebody else has the message.
func TestClaimThatEnds(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		enqueue(t, s, message("a", "f1"))
		first, err := s.Claim(t.Context(), "ops", time.Millisecond, 1)
		if err != nil || len(first) != 1 {
			t.Fatalf("%v, %v", ids(first), err)
		}
		var second []locksteward.Notification
		testredis.Eventually(t, within, func() bool {
			second = claim(t, s, "ops", 1)
			return len(second) == 1
		}, "the claim does not end")
		if second[0].Attempts < 2 {
			t.Errorf("attempt %d", second[0].Attempts)
		}
		if err := s.Delivered(t.Context(), first[0]); !errors.Is(err, locksteward.ErrClaimLost) {
			t.Errorf("late word: %v", err)
		}
		if err := s.Delivered(t.Context(), second[0]); err != nil {
			t.Error(err)
		}
	})
}

// Eight senders, each message once and those of one finding in order.
func TestManyClaimers(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		const findings, each, senders = 10, 8, 8
		var all []locksteward.Notification
		for n := range each {
			for f := range findings {
				all = append(all, message(fmt.Sprintf("f%d-%d", f, n), fmt.Sprint("f", f)))
			}
		}
		enqueue(t, s, all...)
		var mu sync.Mutex
		sent := map[string][]string{}
		done := 0
		var group sync.WaitGroup
		for range senders {
			group.Go(func() {
				for {
					got, err := s.Claim(context.Background(), "ops", time.Minute, 3)
					if err != nil {
						t.Error(err)
						return
					}
					for _, m := range got {
						mu.Lock()
						sent[m.Ordering] = append(sent[m.Ordering], m.ID)
						done++
						mu.Unlock()
						if err := s.Delivered(context.Background(), m); err != nil {
							t.Error(err)
						}
					}
					mu.Lock()
					over := done >= len(all)
					mu.Unlock()
					if over || t.Failed() {
						return
					}
				}
			})
		}
		group.Wait()
		for f := range findings {
			var want []string
			for n := range each {
				want = append(want, fmt.Sprintf("f%d-%d", f, n))
			}
			if got := sent[fmt.Sprint("f", f)]; !slices.Equal(got, want) {
				t.Errorf("sent %v, want %v", got, want)
			}
		}
	})
}

// Anyone who is notified of new messages may wait for another who writes, or write.
func TestEnqueuedWhoWrites(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		var calls atomic.Int64
		s.OnOutboxChange(func() {
			calls.Add(1)
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			if err := s.SaveSetting(ctx, "reported", "yes"); err != nil {
				t.Errorf("while others are notified of messages nobody can write: %v", err)
			}
		})
		if err := s.Append(t.Context(), store.Change{Notifications: []locksteward.Notification{message("m", "")}}); err != nil || calls.Load() != 1 {
			t.Errorf("%d calls, %v", calls.Load(), err)
		}
	})
}

// What changes and what is notified of it are written together or not at all.
func TestMessagesComeWithTheChange(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		var calls atomic.Int64
		s.OnOutboxChange(func() {
			// They can be claimed by now.
			if list, err := s.Notifications(t.Context(), store.NotificationQuery{State: locksteward.NotificationWaiting, Limit: 1000}); err != nil || int64(len(list)) <= calls.Load() {
				t.Errorf("reported messages that are not there: %d, %v", len(list), err)
			}
			calls.Add(1)
		})
		s.Compose(func(c store.Written) []locksteward.Notification {
			if c.After == nil {
				return []locksteward.Notification{message(c.Entries[0].Action, "")}
			}
			return []locksteward.Notification{message(fmt.Sprintf("%s %s %d", c.After.ID, c.After.State, len(c.Entries)), c.After.ID)}
		})
		create(t, s, newRequest("r-1", "lock:a"))
		move := func(id string, to locksteward.RequestState, err error, entries ...locksteward.Entry) error {
			_, got := s.UpdateRequest(t.Context(), id, func(r *locksteward.Request) ([]locksteward.Entry, error) {
				r.State = to
				return entries, err
			})
			return got
		}
		entry := locksteward.Entry{Action: "test"}
		if err := move("r-1", locksteward.RequestApproved, nil, entry, entry); err != nil {
			t.Fatal(err)
		}
		mine := errors.New("no")
		if err := move("r-1", locksteward.RequestExecuting, mine, entry); !errors.Is(err, mine) {
			t.Fatal(err)
		}
		if err := move("r-1", locksteward.RequestExecuting, nil); !errors.Is(err, store.ErrNoEntry) {
			t.Fatalf("another state without an entry: %v", err)
		}
		if err := s.CreateRequest(t.Context(), newRequest("r-9", "lock:z"), nil, nil); !errors.Is(err, store.ErrNoEntry) {
			t.Fatalf("a request without an entry: %v", err)
		}
		_, err := s.UpdateRequest(t.Context(), "r-1", func(r *locksteward.Request) ([]locksteward.Entry, error) {
			r.Outcome = "waiting"
			return nil, nil
		})
		if err != nil {
			t.Fatalf("a sentence alone needs no entry: %v", err)
		}
		// One that gives way tells so too.
		err = s.CreateRequest(t.Context(), newRequest("r-2", "lock:a"), []locksteward.Entry{entry}, func(open *locksteward.Request) ([]locksteward.Entry, error) {
			open.State = locksteward.RequestSuperseded
			return []locksteward.Entry{entry}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		list, err := s.Notifications(t.Context(), store.NotificationQuery{})
		want := []string{"r-2 pending 1", "r-1 superseded 1", "r-1 approved 2", "r-1 pending 1"}
		if err != nil || !slices.Equal(ids(list), want) {
			t.Errorf("%q, %v\nwant %q", ids(list), err, want)
		}
		if err := s.AppendEntries(t.Context(), locksteward.Entry{Action: "stopped"}); err != nil {
			t.Fatal(err)
		}
		if err := s.SaveSetting(t.Context(), "pauses", "all", locksteward.Entry{Action: "set"}); err != nil {
			t.Fatal(err)
		}
		if value, err := s.LoadSetting(t.Context(), "pauses"); err != nil || value != "all" {
			t.Errorf("%q, %v", value, err)
		}
		if value, err := s.LoadSetting(t.Context(), "none"); err != nil || value != "" {
			t.Errorf("%q, %v", value, err)
		}
		list, err = s.Notifications(t.Context(), store.NotificationQuery{Limit: 2})
		if err != nil || !slices.Equal(ids(list), []string{"set", "stopped"}) {
			t.Errorf("%q, %v", ids(list), err)
		}
		verified(t, s, 7)

		// Findings and what is notified of them.
		f := locksteward.Finding{Rule: "ttl/none", Severity: locksteward.SeverityCritical, Status: locksteward.StatusFiring, Target: "orders", Key: "lock:a"}
		if err := s.UpdateFindings(t.Context(), "orders", slices.Values([]locksteward.Finding{f}), store.Outgoing{Notifications: []locksteward.Notification{message("fires", f.Fingerprint())}}); err != nil {
			t.Fatal(err)
		}
		bad := f
		bad.Key, bad.Severity = "lock:b", 0
		if err := s.SaveFindings(t.Context(), "orders", slices.Values([]locksteward.Finding{bad}), store.Outgoing{Notifications: []locksteward.Notification{message("lost", "x")}}); err == nil {
			t.Fatal("a finding without severity was stored")
		}
		if err := s.SaveFindings(t.Context(), "orders", nil, store.Outgoing{Notifications: []locksteward.Notification{{ID: "nobody"}}}); err == nil {
			t.Fatal("a message to nobody was stored")
		}
		got, err := s.LoadFindings(t.Context(), "orders")
		reported, terr := s.Notifications(t.Context(), store.NotificationQuery{Ordering: f.Fingerprint()})
		if err != nil || terr != nil || len(got) != 1 || len(reported) != 1 {
			t.Errorf("%d findings, %v; %d messages, %v", len(got), err, len(reported), terr)
		}
		if lost, err := s.Notifications(t.Context(), store.NotificationQuery{Ordering: "x"}); err != nil || len(lost) != 0 {
			t.Errorf("%d messages of what was not written, %v", len(lost), err)
		}
		// One call for each transaction that brought messages, and none for the others.
		if n := calls.Load(); n != 6 {
			t.Errorf("received %d times that there are messages", n)
		}
	})
}
