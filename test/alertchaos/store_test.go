package alertchaos_test

import (
	"database/sql"
	"os"
	"strings"
	"syscall"

	_ "modernc.org/sqlite" // the store's file is read without its package
)

// committed is a transition as the store has it.
type committed struct {
	seq                 int64
	fingerprint, status string
	receivers           string // one a line
}

// look reads what the store has of transitions while no agent runs. In the control
// it then forgets what waits, as a queue in memory would have.
func (b *bed) look() {
	b.t.Helper()
	if b.full {
		return // it cannot even be read; what is in it now is in it later
	}
	if _, err := os.Stat(b.db); err != nil {
		return // no agent lived long enough to make one
	}
	db := b.open("rw")
	defer db.Close()
	rows, err := db.Query(`SELECT event_id, seq, fingerprint, status, receivers FROM alert_events`)
	if err != nil {
		if strings.Contains(err.Error(), "no such table") {
			return // no agent lived long enough to make one
		}
		b.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		var c committed
		if err := rows.Scan(&id, &c.seq, &c.fingerprint, &c.status, &c.receivers); err != nil {
			b.t.Fatal(err)
		}
		b.committed[id] = c
	}
	if err := rows.Err(); err != nil {
		b.t.Fatal(err)
	}
	if !b.s.forgetful {
		return
	}
	for _, query := range []string{`DELETE FROM outbox WHERE state = 'waiting'`, `DELETE FROM alert_pending`, `UPDATE alert_groups SET due_at = 0`} {
		if _, err := db.Exec(query); err != nil {
			b.t.Fatal(err)
		}
	}
}

// written are the transitions that the store has now.
func (b *bed) written() map[string]bool {
	b.t.Helper()
	db := b.open("ro")
	defer db.Close()
	out := map[string]bool{}
	rows, err := db.Query(`SELECT event_id FROM alert_events`)
	if err != nil {
		b.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			b.t.Fatal(err)
		}
		out[id] = true
	}
	if err := rows.Err(); err != nil {
		b.t.Fatal(err)
	}
	return out
}

// waiting is how much waits in the store for all receivers.
func (b *bed) waiting() int {
	b.t.Helper()
	db := b.open("ro")
	defer db.Close()
	n := 0
	err := db.QueryRow(`SELECT (SELECT COUNT(*) FROM outbox WHERE state <> 'delivered') + (SELECT COUNT(*) FROM alert_pending)`).Scan(&n)
	if err != nil {
		b.t.Logf("count what waits: %v", err)
		return -1
	}
	return n
}

// explain tells why what waits is not reported: for each receiver what its messages wait
// for, and what the agent is doing.
func (b *bed) explain() {
	b.t.Helper()
	db := b.open("ro")
	defer db.Close()
	const micros = `CAST(unixepoch('subsec') * 1e6 AS INTEGER)`
	for _, query := range []string{
		`SELECT printf('%s, %s: %d, first of their order %d, due %d, claimed %d, attempts up to %d, the last due in %d s', receiver, state, COUNT(*),
			SUM(ordering = '' OR NOT EXISTS (SELECT 1 FROM outbox p WHERE p.receiver = o.receiver AND p.ordering = o.ordering
				AND p.state = 'waiting' AND p.seq < o.seq)),
			SUM(next_at <= ` + micros + `), SUM(claimed_until > ` + micros + `), MAX(attempts), (MAX(next_at) - ` + micros + `) / 1000000)
			FROM outbox o WHERE state <> 'delivered' GROUP BY receiver, state`,
		`SELECT printf('%s: %d in groups, held %d', receiver, COUNT(*), SUM(held <> '')) FROM alert_pending GROUP BY receiver`,
		`SELECT printf('%s: group %s due in %d s', receiver, group_key, (due_at - ` + micros + `) / 1000000) FROM alert_groups WHERE due_at > 0`,
	} {
		rows, err := db.Query(query)
		if err != nil {
			b.t.Logf("explain: %v", err)
			return
		}
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				b.t.Logf("explain: %v", err)
			}
			b.t.Log(line)
		}
		if err := rows.Err(); err != nil {
			b.t.Logf("explain: %v", err)
		}
		_ = rows.Close()
	}
	b.agent.Signal(syscall.SIGQUIT) // Its goroutines stand at the end of its log then.
	<-b.agent.Done()
}

func (b *bed) open(mode string) *sql.DB {
	b.t.Helper()
	db, err := sql.Open("sqlite", "file:"+b.db+"?mode="+mode+"&_pragma=busy_timeout(5000)")
	if err != nil {
		b.t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	return db
}
