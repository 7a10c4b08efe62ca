package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/locksteward/locksteward"
)

// maxGroup bounds the key of a group, in bytes.
const maxGroup = 512

// eventsAtOnce is how many events are looked up and written together: the memory for a
// storm does not depend on its size.
const eventsAtOnce = 500

// addEvents writes events inside the transaction of the findings that they are about. An
// event that the store has is not taken in again for a receiver that has or had it. All
// events of a finding that wait for a receiver are in the group of the first of them; the
// end of a finding is in the group of its beginning. The caller is the only writer of its
// kind, as for [enqueue].
func addEvents(ctx context.Context, t *tx, events []locksteward.FindingEvent) error {
	if len(events) == 0 {
		return nil
	}
	in := &eventWriter{t: t, groups: map[groupKey]groupTerms{}}
	if err := t.row(ctx, `SELECT seq, `+t.on.now+` FROM outbox_head WHERE id = 1`).Scan(&in.seq, &in.now); err != nil {
		return fmt.Errorf("read head of outbox: %w", err)
	}
	before := in.seq
	for part := range slices.Chunk(events, eventsAtOnce) {
		if err := in.write(ctx, part); err != nil {
			return err
		}
	}
	if len(in.groups) > 0 {
		if err := in.scheduleGroups(ctx); err != nil {
			return err
		}
		t.outboxChanged = true
	}
	if in.seq == before {
		return nil
	}
	_, err := t.exec(ctx, `UPDATE outbox_head SET seq = ? WHERE id = 1`, in.seq)
	return err
}

// eventWriter writes the events of one transaction.
type eventWriter struct {
	t        *tx
	seq, now int64
	groups   map[groupKey]groupTerms // those with new events
}

// groupKey names one receiver's group.
type groupKey struct{ receiver, group string }

// write writes a part of the events.
func (in *eventWriter) write(ctx context.Context, events []locksteward.FindingEvent) error {
	for _, e := range events {
		if err := checkEvent(e); err != nil {
			return err
		}
	}
	known, err := in.known(ctx, events)
	if err != nil {
		return err
	}
	groups, err := in.readGroups(ctx, events)
	if err != nil {
		return err
	}
	var rows, pending [][]any
	var direct latest[receiverFinding]
	for _, e := range events {
		old, twice := known[e.ID]
		to := old.missing(e.To)
		if len(to) == 0 {
			continue
		}
		print := e.Finding.Fingerprint()
		have := storedEvent{seq: old.seq, receivers: old.with(to)}
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
			rows[old.at][columnReceivers] = have.receivers // it is among rows already
			have.fresh, have.at = true, old.at
		default:
			if err := in.addReceivers(ctx, e, have); err != nil {
				return err
			}
		}
		if !twice {
			have.fresh, have.at = true, len(rows)-1
		}
		known[e.ID] = have
		for _, r := range to {
			group := groups.assign(r, print, e.Finding.Status)
			if r.Direct {
				direct.put(receiverFinding{r.Receiver, print}, r.Receiver, print, group, have.seq, number(e.FirstSweep), e.Finding.Status)
				continue
			}
			pending = append(pending, []any{r.Receiver, group, have.seq, "", r.Urgency})
			in.groups[groupKey{r.Receiver, group}] = in.groups[groupKey{r.Receiver, group}].with(r)
		}
	}
	if err := in.t.insert(ctx, "alert_events", eventColumns, "", rows); err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	if err := in.t.insert(ctx, "alert_pending", "receiver, group_key, seq, held, urgency", "", pending); err != nil {
		return fmt.Errorf("write pending events: %w", err)
	}
	return in.writeDirect(ctx, direct.rows)
}

// writeDirect records the delivery state of receivers that were notified outside of
// groups, and drops events that are held back of findings that ended for them. The last
// column of a row is the status.
func (in *eventWriter) writeDirect(ctx context.Context, rows [][]any) error {
	var fires [][]any
	for _, row := range rows {
		at, status := row[:len(row)-1], row[len(row)-1]
		if status != locksteward.StatusResolved {
			fires = append(fires, at)
			continue
		}
		if _, err := in.t.exec(ctx, `DELETE FROM alert_delivery_state WHERE receiver = ? AND fingerprint = ?`, at[0], at[1]); err != nil {
			return err
		}
		_, err := in.t.exec(ctx, `DELETE FROM alert_pending WHERE receiver = ? AND held <> ''
			AND seq IN (SELECT seq FROM alert_events WHERE fingerprint = ?)`, at[0], at[1])
		if err != nil {
			return err
		}
	}
	return in.t.setDeliveryState(ctx, fires)
}

// setDeliveryState records which findings receivers know to fire, and by which event.
// Columns are receiver, fingerprint, group, seq and first_sweep.
func (t *tx) setDeliveryState(ctx context.Context, rows [][]any) error {
	return t.insert(ctx, "alert_delivery_state", "receiver, fingerprint, group_key, seq, first_sweep",
		"ON CONFLICT (receiver, fingerprint) DO UPDATE SET group_key = excluded.group_key, seq = excluded.seq, first_sweep = excluded.first_sweep", rows)
}

func checkEvent(e locksteward.FindingEvent) error {
	if e.ID == "" {
		return fmt.Errorf("write event of rule %q: the id must not be empty", e.Finding.Rule)
	}
	for _, r := range e.To {
		if r.Receiver == "" || len(r.Group) > maxGroup {
			return fmt.Errorf("write event %q: receiver %q must not be empty, and its group's key at most %d bytes, got %d", e.ID, r.Receiver, maxGroup, len(r.Group))
		}
	}
	return nil
}

// eventColumns are those of a new event; columnReceivers is the index of receivers.
const (
	eventColumns    = "seq, event_id, number, target, fingerprint, at, first_sweep, lock_key, finding, status, receivers, created_at, done_at"
	columnReceivers = 10
)

func (in *eventWriter) row(e locksteward.FindingEvent, stored storedEvent, print string) ([]any, error) {
	raw, err := json.Marshal(newFindingRow(e.Finding))
	if err != nil {
		return nil, fmt.Errorf("encode finding of rule %q: %w", e.Finding.Rule, err)
	}
	return []any{
		stored.seq, e.ID, int64(e.Number), text(e.Finding.Target), print, micros(e.At), number(e.FirstSweep), bytesOf(e.Finding.Key), string(raw),
		string(e.Finding.Status), stored.receivers, in.now, 0,
	}, nil
}

// addReceivers adds receivers to an event that the store has.
func (in *eventWriter) addReceivers(ctx context.Context, e locksteward.FindingEvent, stored storedEvent) error {
	raw, err := json.Marshal(newFindingRow(e.Finding))
	if err != nil {
		return fmt.Errorf("encode finding of rule %q: %w", e.Finding.Rule, err)
	}
	_, err = in.t.exec(ctx, `UPDATE alert_events SET receivers = ?, finding = ?, lock_key = ?, done_at = 0 WHERE seq = ?`,
		stored.receivers, string(raw), bytesOf(e.Finding.Key), stored.seq)
	return err
}

// storedEvent is what the store has of an event.
type storedEvent struct {
	seq       int64
	receivers string // one a line
	fresh     bool   // written by this part: row number at
	at        int
}

// missing returns the recipients that never had the event, each once.
func (s storedEvent) missing(to []locksteward.Recipient) []locksteward.Recipient {
	had := strings.Split(s.receivers, "\n")
	var out []locksteward.Recipient
	for _, r := range to {
		if !slices.Contains(had, r.Receiver) {
			had = append(had, r.Receiver)
			out = append(out, r)
		}
	}
	return out
}

func (s storedEvent) with(to []locksteward.Recipient) string {
	names := s.receivers
	for _, r := range to {
		if names != "" {
			names += "\n"
		}
		names += r.Receiver
	}
	return names
}

// known returns those events that the store has, by their ids.
func (in *eventWriter) known(ctx context.Context, events []locksteward.FindingEvent) (map[string]storedEvent, error) {
	out := map[string]storedEvent{}
	var args []any
	for _, e := range events {
		args = append(args, e.ID)
	}
	rows, err := in.t.query(ctx, `SELECT event_id, seq, receivers FROM alert_events WHERE event_id IN (`+marks(len(args))+`)`, args...)
	err = each(rows, err, func(row rowScanner) error {
		var id string
		var s storedEvent
		err := row.Scan(&id, &s.seq, &s.receivers)
		out[id] = s
		return err
	})
	return out, err
}

// groupAssignment are the groups in which events of findings wait, or in which receivers
// were notified that findings fire.
type groupAssignment struct{ pending, firing map[receiverFinding]string }

type receiverFinding struct{ receiver, fingerprint string }

func (in *eventWriter) readGroups(ctx context.Context, events []locksteward.FindingEvent) (groupAssignment, error) {
	out := groupAssignment{pending: map[receiverFinding]string{}, firing: map[receiverFinding]string{}}
	var all, ends []any
	for _, e := range events {
		print := e.Finding.Fingerprint()
		all = append(all, print)
		if e.Finding.Status == locksteward.StatusResolved {
			ends = append(ends, print)
		}
	}
	read := func(into map[receiverFinding]string, query string, prints []any) error {
		if len(prints) == 0 {
			return nil
		}
		rows, err := in.t.query(ctx, query+` IN (`+marks(len(prints))+`)`, prints...)
		return each(rows, err, func(row rowScanner) error {
			var at receiverFinding
			var group string
			err := row.Scan(&at.receiver, &at.fingerprint, &group)
			into[at] = group
			return err
		})
	}
	err := read(out.pending, `SELECT p.receiver, e.fingerprint, p.group_key FROM alert_events e JOIN alert_pending p ON p.seq = e.seq WHERE e.fingerprint`, all)
	if err == nil {
		err = read(out.firing, `SELECT receiver, fingerprint, group_key FROM alert_delivery_state WHERE fingerprint`, ends)
	}
	return out, err
}

// assign returns the group in which an event of a finding waits for a receiver.
func (g groupAssignment) assign(r locksteward.Recipient, print string, status locksteward.Status) string {
	at := receiverFinding{r.Receiver, print}
	group, found := g.pending[at]
	if !found && status == locksteward.StatusResolved {
		group, found = g.firing[at]
	}
	if !found {
		group = text(r.Group)
	}
	g.pending[at] = group
	return group
}
