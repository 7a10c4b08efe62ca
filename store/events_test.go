package store_test

import (
	"errors"
	"fmt"
	"reflect"
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

// event is a transition of the finding of a lock, for one group of a receiver.
func event(id, key string, status locksteward.Status, to ...locksteward.Recipient) locksteward.FindingEvent {
	if to == nil {
		to = []locksteward.Recipient{{Receiver: "ops", Group: "g"}}
	}
	at := time.Date(2026, 3, 4, 5, 6, 7, 8000, time.UTC)
	return locksteward.FindingEvent{ID: id, At: at, To: to, Finding: locksteward.Finding{
		Rule: "ttl/none", Severity: locksteward.SeverityCritical, Status: status, Target: "orders", DB: 3, Key: key, Class: "orders",
		Summary: locksteward.Literal("no expiry", "没有过期时间"), Since: at, FiredAt: at,
	}}
}

func fires(id, key string, to ...locksteward.Recipient) locksteward.FindingEvent {
	return event(id, key, locksteward.StatusFiring, to...)
}

func resolves(id, key string, to ...locksteward.Recipient) locksteward.FindingEvent {
	return event(id, key, locksteward.StatusResolved, to...)
}

func writeEvents(t testing.TB, s *store.Store, events ...locksteward.FindingEvent) {
	t.Helper()
	if err := s.UpdateFindings(t.Context(), "orders", nil, outgoing(events...)); err != nil {
		t.Fatal(err)
	}
}

// flushed flushes all due groups of a receiver and returns what was due.
func flushed(t testing.TB, s *store.Store, receiver string, limit int, compose func(locksteward.DueGroup) (locksteward.FlushedGroup, []locksteward.Notification)) []locksteward.DueGroup {
	t.Helper()
	var seen []locksteward.DueGroup
	n, err := s.Flush(t.Context(), receiver, "", 100, limit, func(due []locksteward.DueGroup) (out []locksteward.FlushedGroup, messages []locksteward.Notification) {
		seen = due
		for _, g := range due {
			f, m := compose(g)
			out, messages = append(out, f), append(messages, m...)
		}
		return out, messages
	})
	if err != nil || n != len(seen) {
		t.Fatalf("%d groups of %d, %v", n, len(seen), err)
	}
	return seen
}

// notifyAll makes a notification of everything, until something new is written.
func notifyAll(g locksteward.DueGroup) (locksteward.FlushedGroup, []locksteward.Notification) {
	out := locksteward.FlushedGroup{Group: g.Group, Sent: true, Next: -1}
	for _, w := range g.Waiting {
		out.Notified = append(out.Notified, w.Seq)
	}
	return out, []locksteward.Notification{{ID: fmt.Sprint("m", out.Notified), Receiver: "ops", EventID: "x"}}
}

func keys(events []locksteward.PendingEvent) (out []string) {
	for _, w := range events {
		out = append(out, w.Finding.Key+" "+string(w.Finding.Status))
	}
	return out
}

func count(t testing.TB, s *store.Store, table string) (n int) {
	t.Helper()
	if err := s.SQL().QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// The life of a finding in a group: notified, repeated, resolved, forgotten.
func TestEventsInGroups(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		var wakes atomic.Int32
		s.OnOutboxChange(func() { wakes.Add(1) })
		ops := locksteward.Recipient{Receiver: "ops", Group: "g\xff\x00"}
		chat := locksteward.Recipient{Receiver: "chat", Group: "c", Wait: time.Hour}
		first := fires("e1", "lock:\xff\x00", ops, chat, ops)
		first.FirstSweep = true
		writeEvents(t, s, first, fires("e2", "lock:b", ops))
		writeEvents(t, s, first, fires("e2", "lock:b", ops), fires("e2", "lock:b", ops)) // it has them
		if wakes.Load() != 1 {
			t.Errorf("woken %d times", wakes.Load())
		}
		if wait, ok, err := s.NextGroup(t.Context(), "ops", ""); err != nil || !ok || wait != 0 {
			t.Errorf("due in %s, %t, %v", wait, ok, err)
		}
		if wait, ok, err := s.NextGroup(t.Context(), "chat", ""); err != nil || !ok || wait < 50*time.Minute || wait > time.Hour {
			t.Errorf("due in %s, %t, %v", wait, ok, err)
		}
		if _, ok, err := s.NextGroup(t.Context(), "none", ""); err != nil || ok {
			t.Errorf("%t, %v", ok, err)
		}
		waiting, err := s.Backlogs(t.Context())
		if err != nil || len(waiting) != 2 || waiting[0].Receiver != "chat" || waiting[0].Grouped != 1 || waiting[1].Grouped != 2 || waiting[1].Held != 0 {
			t.Errorf("%+v, %v", waiting, err)
		}

		due := flushed(t, s, "ops", 10, notifyAll)
		if len(due) != 1 || due[0].Group != "g\ufffd\ufffd" || len(due[0].Waiting) != 2 || due[0].More || due[0].Firing != 0 || !due[0].LastAt.IsZero() || due[0].Now.IsZero() {
			t.Fatalf("%+v", due)
		}
		got := due[0].Waiting[0]
		want := first
		want.To, want.Seq = nil, 1
		if !reflect.DeepEqual(got.FindingEvent, want) || got.Known || got.Held != "" || due[0].Waiting[1].Seq != 2 {
			t.Errorf("%+v", got)
		}
		if sent, err := s.Notifications(t.Context(), store.NotificationQuery{}); err != nil || len(sent) != 1 || sent[0].Seq != 3 {
			t.Errorf("%+v, %v", sent, err)
		}
		if _, ok, err := s.NextGroup(t.Context(), "ops", ""); err != nil || ok {
			t.Errorf("due again: %t, %v", ok, err)
		}
		standing, err := s.Firing(t.Context(), "ops", "", 1)
		if err != nil || len(standing) != 1 {
			t.Fatalf("%+v, %v", standing, err)
		}
		more, err := s.Firing(t.Context(), "ops", standing[0].Finding.Fingerprint(), 10)
		if err != nil || len(more) != 1 || more[0].ID == standing[0].ID || more[0].Finding.Status != locksteward.StatusFiring {
			t.Errorf("%+v, %v", more, err)
		}

		// What was sent is not sent again, not even to another group, but to a receiver
		// that never had it.
		late := locksteward.Recipient{Receiver: "late", Group: "l"}
		writeEvents(t, s, fires("e2", "lock:b", ops, late))
		if due := flushed(t, s, "ops", 10, notifyAll); len(due) != 0 {
			t.Errorf("sent twice: %+v", due)
		}
		if due := flushed(t, s, "late", 10, notifyAll); len(due) != 1 || due[0].Waiting[0].Seq != 2 {
			t.Errorf("%+v", due)
		}

		// An end is sent where the beginning was, whatever the labels are now.
		writeEvents(t, s, resolves("e3", "lock:b", locksteward.Recipient{Receiver: "ops", Group: "other"}, late))
		due = flushed(t, s, "ops", 10, notifyAll)
		if len(due) != 1 || due[0].Group != "g\ufffd\ufffd" || due[0].Firing != 2 || due[0].LastAt.IsZero() || len(due[0].Waiting) != 1 || !due[0].Waiting[0].Known {
			t.Fatalf("%+v", due)
		}
		if standing, err = s.Firing(t.Context(), "ops", "", 10); err != nil || len(standing) != 1 || standing[0].ID != "e1" || !standing[0].FirstSweep {
			t.Errorf("%+v, %v", standing, err)
		}
		flushed(t, s, "late", 10, notifyAll)
		var left, spent int
		err = s.SQL().QueryRowContext(t.Context(), `SELECT COUNT(*), SUM(CASE WHEN done_at > 0 AND finding = '' THEN 1 ELSE 0 END) FROM alert_events`).Scan(&left, &spent)
		if err != nil || left != 3 || spent != 2 {
			t.Errorf("%d events, %d of them spent, %v", left, spent, err)
		}
		// Written again they are known still; pruned they are gone.
		writeEvents(t, s, fires("e2", "lock:b", ops, late), resolves("e3", "lock:b", ops))
		if due := flushed(t, s, "ops", 10, notifyAll); len(due) != 0 {
			t.Errorf("sent twice: %+v", due)
		}
		if n, err := s.PruneEvents(t.Context(), time.Hour); err != nil || n != 0 {
			t.Errorf("pruned %d, %v", n, err)
		}
		if n, err := s.PruneEvents(t.Context(), -time.Hour); err != nil || n != 2 {
			t.Errorf("pruned %d, %v", n, err)
		}
		if n := count(t, s, "alert_events"); n != 1 {
			t.Errorf("%d events are left", n)
		}
		if n := count(t, s, "alert_groups"); n != 2 { // ops's, in which e1 stands, and chat's
			t.Errorf("%d groups are left", n)
		}
		// A receiver that is no more.
		if n, err := s.DropReceiver(t.Context(), "chat"); err != nil || n != 1 {
			t.Errorf("dropped %d, %v", n, err)
		}
		if n, err := s.DropReceiver(t.Context(), "ops"); err != nil || n != 0 {
			t.Errorf("dropped %d, %v", n, err)
		}
		if n, err := s.PruneEvents(t.Context(), -time.Hour); err != nil || n != 1 {
			t.Errorf("pruned %d, %v", n, err)
		}
		if _, ok, err := s.NextGroup(t.Context(), "ops", ""); err != nil || ok {
			t.Errorf("%t, %v", ok, err)
		}
	})
}

// What is held back is judged anew when it is woken, unless its end waits already.
func TestWakeHeldLeavesWhatEnded(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		ops, chat := locksteward.Recipient{Receiver: "ops", Group: "g"}, locksteward.Recipient{Receiver: "chat", Group: "g"}
		writeEvents(t, s, fires("e1", "lock:a", ops), fires("e2", "lock:b", ops), fires("e3", "lock:a", chat))
		for _, receiver := range []string{"ops", "chat"} {
			flushed(t, s, receiver, 10, func(g locksteward.DueGroup) (locksteward.FlushedGroup, []locksteward.Notification) {
				out := locksteward.FlushedGroup{Group: g.Group, Next: time.Hour, Held: map[int64]string{}}
				for _, w := range g.Waiting {
					out.Held[w.Seq] = "inhibit"
				}
				return out, nil
			})
		}
		writeEvents(t, s, resolves("e4", "lock:a", ops)) // for chat it has not ended
		writeEvents(t, s, fires("e5", "lock:a", ops))
		if err := s.WakeHeld(t.Context()); err != nil {
			t.Fatal(err)
		}
		for receiver, want := range map[string]string{
			"ops":  "lock:a firing inhibit, lock:b firing , lock:a resolved , lock:a firing ",
			"chat": "lock:a firing ",
		} {
			var got []string
			for _, g := range flushed(t, s, receiver, 10, notifyAll) {
				for i, k := range keys(g.Waiting) {
					got = append(got, k+" "+g.Waiting[i].Held)
				}
			}
			if text := strings.Join(got, ", "); text != want {
				t.Errorf("%s has %q, want %q", receiver, text, want)
			}
		}
	})
}

// What becomes of a group is what compose says, and what it says nothing about waits.
func TestFlush(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		var events []locksteward.FindingEvent
		for i := range 6 {
			events = append(events, fires(fmt.Sprint("e", i), fmt.Sprint("lock:", i)))
		}
		writeEvents(t, s, events...)
		hold := func(g locksteward.DueGroup) (locksteward.FlushedGroup, []locksteward.Notification) {
			out := locksteward.FlushedGroup{Group: g.Group, Next: time.Hour, Held: map[int64]string{}}
			for i, w := range g.Waiting {
				switch i {
				case 0:
					out.Notified = []int64{w.Seq}
				case 1:
					out.Dropped = []int64{w.Seq}
				default:
					out.Held[w.Seq] = "silence s1"
				}
			}
			return out, nil
		}
		due := flushed(t, s, "ops", 4, hold)
		if len(due) != 1 || !due[0].More || !slices.Equal(keys(due[0].Waiting), []string{"lock:0 firing", "lock:1 firing", "lock:2 firing", "lock:3 firing"}) {
			t.Fatalf("%+v", due)
		}
		// More wait: due at once. What is held back stays out of it.
		due = flushed(t, s, "ops", 10, func(g locksteward.DueGroup) (locksteward.FlushedGroup, []locksteward.Notification) {
			out := locksteward.FlushedGroup{Group: g.Group, Next: time.Hour, Held: map[int64]string{}}
			for _, w := range g.Waiting {
				out.Held[w.Seq] = "silence s1"
			}
			return out, nil
		})
		if len(due) != 1 || !slices.Equal(keys(due[0].Waiting), []string{"lock:4 firing", "lock:5 firing"}) || due[0].Firing != 1 || due[0].FiringEvents != nil {
			t.Fatalf("%+v", due)
		}
		if wait, ok, err := s.NextGroup(t.Context(), "ops", ""); err != nil || !ok || wait < 50*time.Minute {
			t.Errorf("due in %s, %t, %v", wait, ok, err)
		}
		if waiting, err := s.Backlogs(t.Context()); err != nil || len(waiting) != 1 || waiting[0].Grouped != 4 || waiting[0].Held != 4 || waiting[0].Groups != 1 {
			t.Errorf("%+v, %v", waiting, err)
		}
		if err := s.WakeHeld(t.Context()); err != nil {
			t.Fatal(err)
		}
		// What was held back is to be notified like anything else. What is not mentioned
		// stays, and the group is due at once.
		due = flushed(t, s, "ops", 10, func(g locksteward.DueGroup) (locksteward.FlushedGroup, []locksteward.Notification) {
			return locksteward.FlushedGroup{Group: g.Group, Notified: []int64{g.Waiting[0].Seq}, Next: time.Hour}, nil
		})
		if len(due) != 1 || len(due[0].Waiting) != 4 || due[0].Waiting[0].Held != "" || len(due[0].FiringEvents) != 0 || due[0].Firing != 1 {
			t.Fatalf("%+v", due)
		}
		due = flushed(t, s, "ops", 10, notifyAll)
		if len(due) != 1 || len(due[0].Waiting) != 3 || due[0].Firing != 2 {
			t.Fatalf("%+v", due)
		}
		// Due again without news: a repeat.
		if err := s.Exec(t.Context(), `UPDATE alert_groups SET due_at = 1`); err != nil {
			t.Fatal(err)
		}
		due = flushed(t, s, "ops", 3, func(g locksteward.DueGroup) (locksteward.FlushedGroup, []locksteward.Notification) {
			return locksteward.FlushedGroup{Group: g.Group, Sent: true, Next: time.Hour}, nil
		})
		if len(due) != 1 || len(due[0].Waiting) != 0 || len(due[0].FiringEvents) != 3 || due[0].Firing != 5 || due[0].More {
			t.Fatalf("%+v", due)
		}
		// A group that nothing is said about stays due.
		writeEvents(t, s, resolves("r0", "lock:0"))
		if err := s.Exec(t.Context(), `UPDATE alert_groups SET due_at = 1`); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			n, err := s.Flush(t.Context(), "ops", "", 10, 10, func([]locksteward.DueGroup) ([]locksteward.FlushedGroup, []locksteward.Notification) { return nil, nil })
			if n != 1 || err != nil {
				t.Errorf("%d, %v", n, err)
			}
		}
		for want, f := range map[string]locksteward.FlushedGroup{
			`"none" is not one of the groups`:            {Group: "none"},
			"event 99 does not wait":                     {Group: "g", Notified: []int64{99}},
			"or is named twice":                          {Group: "g", Notified: []int64{12, 12}},
			"is held back without a reason":              {Group: "g", Held: map[int64]string{12: ""}},
			"must not be empty":                          {Group: "message"},
			"event 12 does not wait in it, or is named ": {Group: "g", Notified: []int64{12}, Dropped: []int64{12}},
		} {
			_, err := s.Flush(t.Context(), "ops", "", 10, 10, func(g []locksteward.DueGroup) ([]locksteward.FlushedGroup, []locksteward.Notification) {
				if f.Group == "message" {
					return nil, []locksteward.Notification{{ID: "nobody"}}
				}
				f := f
				for _, list := range [][]int64{f.Notified, f.Dropped} {
					for i := range list {
						if list[i] == 12 {
							list[i] = g[0].Waiting[0].Seq
						}
					}
				}
				if _, ok := f.Held[12]; ok {
					f.Held = map[int64]string{g[0].Waiting[0].Seq: ""}
				}
				return []locksteward.FlushedGroup{f}, nil
			})
			if err == nil || !strings.Contains(err.Error(), strings.ReplaceAll(want, "event 12 ", "")) {
				t.Errorf("got %v, want %s", err, want)
			}
		}
		if _, err := s.Flush(t.Context(), "", "", 1, 1, nil); err == nil {
			t.Error("flushed for nobody")
		}
		if due := flushed(t, s, "ops", 10, notifyAll); len(due) != 1 || len(due[0].Waiting) != 1 {
			t.Errorf("%+v", due)
		}
	})
}

// A beginning that waits in one group keeps what comes after it there, whatever
// labels change: an end is never sent before it.
func TestEventsOfAFindingStayInOrder(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		slow := locksteward.Recipient{Receiver: "ops", Group: "warning", Wait: time.Hour}
		quick := locksteward.Recipient{Receiver: "ops", Group: "critical"}
		writeEvents(t, s, fires("e1", "lock:a", slow), fires("e2", "lock:a", quick))
		writeEvents(t, s, resolves("e3", "lock:a", quick), fires("e4", "lock:b", quick))
		due := flushed(t, s, "ops", 10, notifyAll)
		// Both may be due since the same millisecond.
		i := slices.IndexFunc(due, func(d locksteward.DueGroup) bool { return d.Group == "warning" })
		if len(due) != 2 || i < 0 || !slices.Equal(keys(due[i].Waiting), []string{"lock:a firing", "lock:a firing", "lock:a resolved"}) {
			t.Fatalf("%+v", due)
		}
		if n := count(t, s, "alert_delivery_state"); n != 1 {
			t.Errorf("%d are known to fire", n)
		}
		// Once it is sent, a change of labels moves the finding.
		writeEvents(t, s, fires("e5", "lock:b", slow))
		if err := s.Exec(t.Context(), `UPDATE alert_groups SET due_at = 1 WHERE group_key = 'warning'`); err != nil {
			t.Fatal(err)
		}
		due = flushed(t, s, "ops", 10, notifyAll)
		if len(due) != 1 || due[0].Group != "warning" || !due[0].Waiting[0].Known || due[0].Firing != 0 {
			t.Fatalf("%+v", due)
		}
		writeEvents(t, s, resolves("e6", "lock:b", quick))
		due = flushed(t, s, "ops", 10, notifyAll)
		if len(due) != 1 || due[0].Group != "warning" || count(t, s, "alert_delivery_state") != 0 {
			t.Fatalf("%+v", due)
		}
	})
}

// When a group is due depends on what was sent last and on what waits.
func TestWhenGroupsAreDue(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		n := 0
		dueIn := func(to locksteward.Recipient, want time.Duration) {
			t.Helper()
			n++
			writeEvents(t, s, fires(fmt.Sprint("e", n), fmt.Sprint("lock:", n), to))
			var got int64
			err := s.SQL().QueryRowContext(t.Context(), `SELECT due_at FROM alert_groups WHERE group_key = '`+to.Group+`'`).Scan(&got)
			if d := time.Until(time.UnixMicro(got)); err != nil || d > want+time.Second || d < want-within {
				t.Errorf("event %d is due in %s, %v; want %s", n, d, err, want)
			}
		}
		g := locksteward.Recipient{Receiver: "ops", Group: "g", Wait: 10 * time.Minute, Interval: time.Hour}
		dueIn(g, 10*time.Minute)
		g.Wait = 20 * time.Minute
		dueIn(g, 10*time.Minute) // the second waits no longer than the first
		g.Wait = time.Minute
		dueIn(g, time.Minute) // a shorter wait is kept
		if err := s.Exec(t.Context(), `UPDATE alert_groups SET due_at = 1`); err != nil {
			t.Fatal(err)
		}
		dueIn(g, time.Until(time.UnixMicro(1))) // overdue stays overdue
		repeat := func(g locksteward.DueGroup) (locksteward.FlushedGroup, []locksteward.Notification) {
			out, m := notifyAll(g)
			out.Next = 4 * time.Hour
			return out, m
		}
		flushed(t, s, "ops", 10, repeat)
		dueIn(g, time.Hour) // the interval after the last message, not the repeat
		if err := s.Exec(t.Context(), `UPDATE alert_groups SET last_at = 1, due_at = 0`); err != nil {
			t.Fatal(err)
		}
		dueIn(g, time.Minute)
	})
}

// Two processes flush the same receiver: everything is sent once.
func TestFlushIsOneAtATime(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		stores := []*store.Store{p.open(t)}
		if p.postgres {
			stores = append(stores, p.open(t))
		} else {
			stores = append(stores, stores[0])
		}
		const events = 60
		var mu sync.Mutex
		notified := map[string]int{}
		var group sync.WaitGroup
		for _, s := range stores {
			group.Go(func() {
				testredis.Eventually(t, within, func() bool {
					_, err := s.Flush(t.Context(), "ops", "", 2, 7, func(due []locksteward.DueGroup) (out []locksteward.FlushedGroup, messages []locksteward.Notification) {
						mu.Lock()
						defer mu.Unlock()
						for _, g := range due {
							f, _ := notifyAll(g)
							for _, w := range g.Waiting {
								notified[w.ID]++
							}
							out = append(out, f)
						}
						return out, messages
					})
					if err != nil {
						t.Error(err)
						return true
					}
					mu.Lock()
					defer mu.Unlock()
					return len(notified) == events
				}, "not all is sent")
			})
		}
		for i := range events {
			writeEvents(t, stores[i%2], fires(fmt.Sprint("e", i), fmt.Sprint("lock:", i), locksteward.Recipient{Receiver: "ops", Group: fmt.Sprint("g", i%5)}))
		}
		group.Wait()
		for id, n := range notified {
			if n != 1 {
				t.Errorf("%s was sent %d times", id, n)
			}
		}
		if n := count(t, stores[0], "alert_pending"); n != 0 || count(t, stores[0], "alert_delivery_state") != events {
			t.Errorf("%d wait, %d are known", n, count(t, stores[0], "alert_delivery_state"))
		}
	})
}

// What cannot be written leaves nothing, findings included.
func TestBadEvents(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		bad := fires("e1", "lock:a")
		bad.Finding.Severity = 0
		good := fires("e0", "lock:b")
		for want, e := range map[string]locksteward.FindingEvent{
			"encode finding":       bad,
			"id must not be empty": fires("", "lock:a"),
			"at most 512 bytes":    fires("e1", "lock:a", locksteward.Recipient{Receiver: "ops", Group: strings.Repeat("g", 513)}),
			`receiver "" must not`: fires("e1", "lock:a", locksteward.Recipient{Group: "g"}),
		} {
			err := s.SaveFindings(t.Context(), "orders", slices.Values([]locksteward.Finding{good.Finding}), outgoing(good, e))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		}
		findings, err := s.LoadFindings(t.Context(), "orders")
		if err != nil || len(findings) != 0 || count(t, s, "alert_events") != 0 || count(t, s, "alert_groups") != 0 {
			t.Errorf("%d findings were written, %v", len(findings), err)
		}
		// Anyone who nobody is to be notified of is no event.
		writeEvents(t, s, locksteward.FindingEvent{ID: "e1", Finding: good.Finding})
		if count(t, s, "alert_events") != 0 {
			t.Error("an event for nobody was written")
		}
		if err := s.SaveFindings(t.Context(), "orders", slices.Values([]locksteward.Finding{good.Finding}), outgoing(good)); err != nil {
			t.Fatal(err)
		}
		if findings, err = s.LoadFindings(t.Context(), "orders"); err != nil || len(findings) != 1 || count(t, s, "alert_pending") != 1 {
			t.Errorf("%+v, %v", findings, err)
		}
		// Under an old fence nothing is written.
		view := s.Under(func(string) (store.Lease, bool) { return store.Lease{}, false })
		if err := view.UpdateFindings(t.Context(), "orders", nil, outgoing(fires("e9", "lock:c"))); !errors.Is(err, store.ErrLeaseLost) || count(t, s, "alert_events") != 1 {
			t.Errorf("%v", err)
		}
	})
}

func outgoing(events ...locksteward.FindingEvent) store.Outgoing {
	return store.Outgoing{Events: events}
}

// Any number of events can be held back: what is new is sent beside them, and what
// follows on one of them finds it.
func TestHeldBackIsOutOfTheWay(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		ops := locksteward.Recipient{Receiver: "ops", Group: "g"}
		write := func(events ...locksteward.FindingEvent) {
			t.Helper()
			if err := s.UpdateFindings(t.Context(), "orders", nil, outgoing(events...)); err != nil {
				t.Fatal(err)
			}
		}
		for n := range 20 {
			write(fires(fmt.Sprint("e", n), fmt.Sprint("held:", n), ops))
		}
		holdAll := func(g locksteward.DueGroup) (locksteward.FlushedGroup, []locksteward.Notification) {
			out := locksteward.FlushedGroup{Group: g.Group, Next: -1, Held: map[int64]string{}}
			for _, w := range g.Waiting {
				out.Held[w.Seq] = "silence:s1"
			}
			return out, nil
		}
		for range 5 {
			flushed(t, s, "ops", 4, holdAll)
		}
		if waits, err := s.HasPending(t.Context(), "ops"); err != nil || waits {
			t.Errorf("waits %t, %v", waits, err)
		}
		if _, due, err := s.NextGroup(t.Context(), "ops", ""); err != nil || due {
			t.Errorf("due %t, %v", due, err)
		}
		write(fires("new", "lock:new", ops), resolves("end", "held:7", ops))
		if waits, err := s.HasPending(t.Context(), "ops"); err != nil || !waits {
			t.Errorf("waits %t, %v", waits, err)
		}
		due := flushed(t, s, "ops", 4, func(g locksteward.DueGroup) (locksteward.FlushedGroup, []locksteward.Notification) {
			out := locksteward.FlushedGroup{Group: g.Group, Next: -1}
			for _, w := range g.Waiting {
				out.Dropped = append(out.Dropped, w.Seq)
			}
			return out, nil
		})
		if len(due) != 1 || !slices.Equal(keys(due[0].Waiting), []string{"held:7 firing", "lock:new firing", "held:7 resolved"}) || due[0].Waiting[0].Held != "silence:s1" {
			t.Fatalf("%+v", due)
		}
		// Reported otherwise: nothing waits, what the receiver knows is kept, and what was
		// held back of a finding that ended is gone.
		notified := ops
		notified.Direct = true
		write(fires("f1", "lock:notified", notified), resolves("r3", "held:3", notified))
		standing, err := s.Firing(t.Context(), "ops", "", 10)
		if err != nil || len(standing) != 1 || standing[0].Finding.Key != "lock:notified" {
			t.Errorf("%+v, %v", standing, err)
		}
		if p, err := s.Backlogs(t.Context()); err != nil || len(p) != 1 || p[0].Held != 18 {
			t.Errorf("%+v, %v", p, err)
		}
		write(resolves("r1", "lock:notified", notified))
		if standing, err := s.Firing(t.Context(), "ops", "", 10); err != nil || len(standing) != 0 {
			t.Errorf("%+v, %v", standing, err)
		}
	})
}
