package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/store"
)

// breakOn makes every statement of a kind on a table fail, as a full disk would.
func breakOn(t *testing.T, s *store.Store, table, verb string) (mend func()) {
	t.Helper()
	before := fmt.Sprintf(`CREATE TRIGGER broken BEFORE %s ON %s BEGIN SELECT RAISE(ABORT, 'broken'); END`, verb, table)
	after := `DROP TRIGGER broken`
	if s.OnPostgres() {
		before = fmt.Sprintf(`CREATE OR REPLACE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'broken'; END $$;
			CREATE TRIGGER broken BEFORE %s ON %s FOR EACH ROW EXECUTE FUNCTION broken()`, verb, table)
		after = `DROP TRIGGER broken ON ` + table
	}
	if err := s.Exec(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := s.Exec(t.Context(), after); err != nil {
			t.Error(err)
		}
	}
}

// Whatever statement fails, an event, what is notified of it and what is known of that
// are all written or not at all; and then it works.
func TestAlertsAreWholeAfterAFault(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		ops := locksteward.Recipient{Receiver: "ops", Group: "g"}
		writeEvents(t, s, fires("old", "lock:old"), fires("older", "lock:older"))
		flushed(t, s, "ops", 10, notifyAll)
		tables := []string{"findings", "alert_events", "alert_pending", "alert_groups", "alert_delivery_state", "outbox", "outbox_head", "silences", "entries"}
		state := func() (out string) {
			for _, table := range tables {
				out += fmt.Sprint(table, " ", count(t, s, table), ", ")
			}
			var sum string
			err := s.SQL().QueryRowContext(t.Context(), `SELECT CAST((SELECT SUM(due_at + last_at) FROM alert_groups) AS TEXT) || ' ' ||
				CAST((SELECT SUM(seq) FROM outbox_head) AS TEXT) || ' ' || CAST((SELECT COALESCE(SUM(LENGTH(held)), 0) FROM alert_pending) AS TEXT) || ' ' ||
				CAST((SELECT SUM(done_at) FROM alert_events) AS TEXT)`).Scan(&sum)
			if err != nil {
				t.Fatal(err)
			}
			return out + sum
		}
		n := 0
		write := func() error {
			n++
			key := fmt.Sprint("lock:", n)
			f := fires(fmt.Sprint("e", n), key, ops)
			return s.UpdateFindings(t.Context(), "orders", slices.Values([]locksteward.Finding{f.Finding}), outgoing(f, fires(fmt.Sprint("held", n), "held:"+key, ops), resolves(fmt.Sprint("r", n), "lock:old", ops)))
		}
		flush := func() error {
			_, err := s.Flush(t.Context(), "ops", "", 10, 10, func(due []locksteward.DueGroup) (out []locksteward.FlushedGroup, messages []locksteward.Notification) {
				f, m := notifyAll(due[0])
				f.Held = map[int64]string{f.Notified[1]: "silence"}
				f.Notified = append(f.Notified[:1], f.Notified[2:]...)
				return []locksteward.FlushedGroup{f}, m
			})
			return err
		}
		silence := func() error {
			one := aSilence(fmt.Sprint("s", n))
			return s.AddSilence(t.Context(), one, locksteward.Entry{Action: "silence.add", Subject: one.ID})
		}
		for _, step := range []struct {
			name   string
			do     func() error
			breaks []string
		}{
			{"write", write, []string{"INSERT findings", "INSERT alert_events", "INSERT alert_pending", "UPDATE alert_groups", "UPDATE outbox_head"}},
			{"flush", flush, []string{"DELETE alert_pending", "UPDATE alert_pending", "INSERT alert_delivery_state", "DELETE alert_delivery_state", "UPDATE alert_groups", "UPDATE alert_events", "INSERT outbox", "UPDATE outbox_head"}},
			{"silence", silence, []string{"INSERT silences", "UPDATE alert_groups", "INSERT entries"}},
		} {
			before := state()
			for _, statement := range step.breaks {
				verb, table, _ := strings.Cut(statement, " ")
				mend := breakOn(t, s, table, verb)
				if err := step.do(); err == nil || !strings.Contains(err.Error(), "broken") {
					t.Errorf("%s with a broken %s: %v", step.name, statement, err)
				}
				mend()
				if after := state(); after != before {
					t.Errorf("%s with a broken %s left something\nbefore %s\nafter  %s", step.name, statement, before, after)
				}
			}
			if err := step.do(); err != nil || state() == before {
				t.Errorf("%s after all faults: %v", step.name, err)
			}
		}
		verified(t, s, 1)
	})
}
