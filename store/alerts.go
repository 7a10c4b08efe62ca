package store

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// Event is one transition of a finding that receivers are to be told of. The ID
// is unique: an event that the store knows is not taken in again for a receiver
// that has or had it, so that writing a change twice tells it once.
type Event struct {
	ID      string
	Number  uint64 // what receivers see of its place among all events
	At      time.Time
	Survey  bool // found by the first sweep of its target
	Finding locksteward.Finding
	To      []Address

	// Seq is the event's place in the order in which changes were written, which it
	// shares with the messages of the outbox. The store sets it.
	Seq int64
}

// Address is the group in which one receiver is told of an event. All events of a
// finding that wait for a receiver are in the group of the first of them, and the
// end of a finding is in the group in which its beginning was told: they stay in
// their order whatever labels change meanwhile.
type Address struct {
	Receiver string
	Group    string        // its key, at most 512 bytes
	Wait     time.Duration // how long the first event of a quiet group waits for others
	Interval time.Duration // the least time between two messages of the group
	Urgency  int           // how urgent the event is: of groups that are due, the one with the most urgent event comes first
	// Told says that the receiver is told otherwise: the event does not wait, and what
	// the receiver knows from then on is kept.
	Told bool
}

// maxGroup is how long a group's key may be, in bytes.
const maxGroup = 512

// eventsAtOnce is how many events are looked up and written together: what a
// storm needs in memory does not depend on its size.
const eventsAtOnce = 500

// addEvents writes events inside the transaction of the findings that they are
// about, part by part. The caller is the only writer of its kind, as for [enqueue].
func addEvents(ctx context.Context, t *tx, parts iter.Seq[[]Event]) error {
	in := &intake{t: t, groups: map[groupKey]terms{}}
	var before int64
	begun := false
	for part := range parts {
		if !begun {
			if err := t.row(ctx, `SELECT seq, `+t.on.now+` FROM outbox_head WHERE id = 1`).Scan(&in.seq, &in.now); err != nil {
				return fmt.Errorf("read head of outbox: %w", err)
			}
			before, begun = in.seq, true
		}
		if err := in.take(ctx, part); err != nil {
			return err
		}
	}
	if len(in.groups) > 0 {
		if err := in.dueGroups(ctx); err != nil {
			return err
		}
		t.enqueued = true
	}
	if in.seq == before {
		return nil
	}
	_, err := t.exec(ctx, `UPDATE outbox_head SET seq = ? WHERE id = 1`, in.seq)
	return err
}

// intake writes the events of one transaction.
type intake struct {
	t        *tx
	seq, now int64
	groups   map[groupKey]terms // those that something new waits in
}

// groupKey names one receiver's group.
type groupKey struct{ receiver, group string }

// take writes a part of the events.
func (in *intake) take(ctx context.Context, events []Event) error {
	for _, e := range events {
		if err := e.check(); err != nil {
			return err
		}
	}
	known, err := in.known(ctx, events)
	if err != nil {
		return err
	}
	seats, err := in.seats(ctx, events)
	if err != nil {
		return err
	}
	var rows, pending [][]any
	var told latest[seat]
	for _, e := range events {
		old, twice := known[e.ID]
		to := old.missing(e.To)
		if len(to) == 0 {
			continue
		}
		print := e.Finding.Fingerprint()
		have := written{seq: old.seq, receivers: old.with(to)}
		switch {
		case !twice:
			in.seq++
			have.seq = in.seq
			row, err := in.row(e, have, print)
			if err != nil {
				return err
			}
			rows = append(rows, row)
		case old.fresh:
			rows[old.at][columnReceivers] = have.receivers // it stands among rows already
			have.fresh, have.at = true, old.at
		default:
			if err := in.again(ctx, e, have); err != nil {
				return err
			}
		}
		if !twice {
			have.fresh, have.at = true, len(rows)-1
		}
		known[e.ID] = have
		for _, a := range to {
			group := seats.of(a, print, e.Finding.Status)
			if a.Told {
				told.put(seat{a.Receiver, print}, a.Receiver, print, group, have.seq, number(e.Survey), e.Finding.Status)
				continue
			}
			pending = append(pending, []any{a.Receiver, group, have.seq, "", a.Urgency})
			in.groups[groupKey{a.Receiver, group}] = in.groups[groupKey{a.Receiver, group}].with(a)
		}
	}
	if err := in.t.insert(ctx, "alert_events", eventColumns, "", rows); err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	if err := in.t.insert(ctx, "alert_pending", "receiver, grp, seq, held, urgency", "", pending); err != nil {
		return fmt.Errorf("write what is to be told: %w", err)
	}
	return in.told(ctx, told.rows)
}

// told keeps what receivers know that were told otherwise; nothing held back is
// left of what ended for them. The last column is the status.
func (in *intake) told(ctx context.Context, rows [][]any) error {
	var fires [][]any
	for _, row := range rows {
		at, status := row[:len(row)-1], row[len(row)-1]
		if status != locksteward.StatusResolved {
			fires = append(fires, at)
			continue
		}
		if _, err := in.t.exec(ctx, `DELETE FROM alert_told WHERE receiver = ? AND fingerprint = ?`, at[0], at[1]); err != nil {
			return err
		}
		_, err := in.t.exec(ctx, `DELETE FROM alert_pending WHERE receiver = ? AND held <> ''
			AND seq IN (SELECT seq FROM alert_events WHERE fingerprint = ?)`, at[0], at[1])
		if err != nil {
			return err
		}
	}
	return in.t.insert(ctx, "alert_told", "receiver, fingerprint, grp, seq, survey",
		"ON CONFLICT (receiver, fingerprint) DO UPDATE SET grp = excluded.grp, seq = excluded.seq, survey = excluded.survey", fires)
}

func (e Event) check() error {
	if e.ID == "" {
		return fmt.Errorf("write event of rule %q: the id must not be empty", e.Finding.Rule)
	}
	for _, a := range e.To {
		if a.Receiver == "" || len(a.Group) > maxGroup {
			return fmt.Errorf("write event %q: receiver %q must not be empty, and its group's key at most %d bytes, got %d", e.ID, a.Receiver, maxGroup, len(a.Group))
		}
	}
	return nil
}

// eventColumns are those of a new event; receivers is the one of number
// columnReceivers.
const (
	eventColumns    = "seq, event_id, number, target, fingerprint, at, survey, lock_key, finding, status, receivers, created_at, spent"
	columnReceivers = 10
)

func (in *intake) row(e Event, w written, print string) ([]any, error) {
	raw, err := json.Marshal(newFindingRow(e.Finding))
	if err != nil {
		return nil, fmt.Errorf("encode finding of rule %q: %w", e.Finding.Rule, err)
	}
	return []any{
		w.seq, e.ID, int64(e.Number), text(e.Finding.Target), print, micros(e.At), number(e.Survey), bytesOf(e.Finding.Key), string(raw),
		string(e.Finding.Status), w.receivers, in.now, 0,
	}, nil
}

// again writes an event that the store knows for receivers that never had it.
func (in *intake) again(ctx context.Context, e Event, w written) error {
	raw, err := json.Marshal(newFindingRow(e.Finding))
	if err != nil {
		return fmt.Errorf("encode finding of rule %q: %w", e.Finding.Rule, err)
	}
	_, err = in.t.exec(ctx, `UPDATE alert_events SET receivers = ?, finding = ?, lock_key = ?, spent = 0 WHERE seq = ?`,
		w.receivers, string(raw), bytesOf(e.Finding.Key), w.seq)
	return err
}

// written is an event as the store knows it.
type written struct {
	seq       int64
	receivers string // one a line
	fresh     bool   // it is of this very transaction: row number at of its part
	at        int
}

// missing are the addresses of receivers that never had the event, each once.
func (w written) missing(to []Address) []Address {
	had := strings.Split(w.receivers, "\n")
	var out []Address
	for _, a := range to {
		if !slices.Contains(had, a.Receiver) {
			had = append(had, a.Receiver)
			out = append(out, a)
		}
	}
	return out
}

func (w written) with(to []Address) string {
	names := w.receivers
	for _, a := range to {
		if names != "" {
			names += "\n"
		}
		names += a.Receiver
	}
	return names
}

// known returns those events that the store has, by their ids.
func (in *intake) known(ctx context.Context, events []Event) (map[string]written, error) {
	out := map[string]written{}
	var args []any
	for _, e := range events {
		args = append(args, e.ID)
	}
	rows, err := in.t.query(ctx, `SELECT event_id, seq, receivers FROM alert_events WHERE event_id IN (`+marks(len(args))+`)`, args...)
	err = each(rows, err, func(row rowScanner) error {
		var id string
		var w written
		err := row.Scan(&id, &w.seq, &w.receivers)
		out[id] = w
		return err
	})
	return out, err
}

// seats are the groups in which findings wait to be told, or were told.
type seats struct{ waiting, told map[seat]string }

type seat struct{ receiver, fingerprint string }

func (in *intake) seats(ctx context.Context, events []Event) (seats, error) {
	out := seats{waiting: map[seat]string{}, told: map[seat]string{}}
	var all, ends []any
	for _, e := range events {
		print := e.Finding.Fingerprint()
		all = append(all, print)
		if e.Finding.Status == locksteward.StatusResolved {
			ends = append(ends, print)
		}
	}
	read := func(into map[seat]string, query string, prints []any) error {
		if len(prints) == 0 {
			return nil
		}
		rows, err := in.t.query(ctx, query+` IN (`+marks(len(prints))+`)`, prints...)
		return each(rows, err, func(row rowScanner) error {
			var at seat
			var group string
			err := row.Scan(&at.receiver, &at.fingerprint, &group)
			into[at] = group
			return err
		})
	}
	err := read(out.waiting, `SELECT p.receiver, e.fingerprint, p.grp FROM alert_events e JOIN alert_pending p ON p.seq = e.seq WHERE e.fingerprint`, all)
	if err == nil {
		err = read(out.told, `SELECT receiver, fingerprint, grp FROM alert_told WHERE fingerprint`, ends)
	}
	return out, err
}

// of is the group in which an event of a finding goes to a receiver.
func (s seats) of(a Address, print string, status locksteward.Status) string {
	at := seat{a.Receiver, print}
	group, waits := s.waiting[at]
	if !waits && status == locksteward.StatusResolved {
		group, waits = s.told[at]
	}
	if !waits {
		group = text(a.Group)
	}
	s.waiting[at] = group
	return group
}
