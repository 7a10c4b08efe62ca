package takeover_test

import (
	"bufio"
	"context"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
)

// tables are those of the store that know how far people were notified of a lock, each
// with the rows that are about one.
var tables = map[string]string{
	"findings":             "SELECT t::text FROM findings t WHERE t::text LIKE $1 AND $2 = $2",
	"alert_events":         "SELECT left(t::text, 2000) FROM alert_events t WHERE fingerprint = $2 OR t::text LIKE $1",
	"alert_pending":        "SELECT t::text FROM alert_pending t WHERE group_key LIKE '%' || $2 || '%' AND $1 <> ''",
	"alert_groups":         "SELECT t::text FROM alert_groups t WHERE group_key LIKE '%' || $2 || '%' AND $1 <> ''",
	"alert_delivery_state": "SELECT t::text FROM alert_delivery_state t WHERE fingerprint = $2 AND $1 <> ''",
	"outbox":               "SELECT left(t::text, 2000) FROM outbox t WHERE t::text LIKE $1 OR t::text LIKE '%' || $2 || '%'",
	"leases":               "SELECT t::text FROM leases t WHERE $1 <> $2",
}

// explain logs what is known of a lock of which somebody was not reported: what each
// replica logged of it, and what the store has.
func (w *world) explain(ctx context.Context, target, key string) {
	fingerprint := ""
	for _, r := range w.replicas {
		f, err := os.Open(r.LogPath())
		if err != nil {
			w.t.Log(err)
			continue
		}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			line := lines.Text()
			about := strings.Contains(line, `"`+key+`"`) && strings.Contains(line, `"`+target+`"`)
			if about && fingerprint == "" {
				if _, rest, ok := strings.Cut(line, `"fingerprint":"`); ok {
					fingerprint, _, _ = strings.Cut(rest, `"`)
				}
			}
			if about || strings.Contains(line, "is watched by") || strings.Contains(line, "agent st") || strings.Contains(line, "took over") ||
				strings.Contains(line, `"error"`) && !strings.Contains(line, "console request failed") {
				w.t.Logf("%s: %.400s", r.Name, line)
			}
		}
		_ = f.Close()
	}
	conn, err := pgx.Connect(ctx, w.dsn)
	if err != nil {
		w.t.Log(err)
		return
	}
	defer conn.Close(ctx)
	for table, query := range tables {
		rows, err := conn.Query(ctx, query, `%`+key+`"%`, fingerprint)
		if err != nil {
			w.t.Logf("%s: %v", table, err)
			continue
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		w.t.Logf("%s of %s: %d rows, %v", table, fingerprint, len(found), err)
		for _, row := range found {
			w.t.Logf("%s: %s", table, row)
		}
	}
}

// activity is what each connection of a replica is about, and for whom it waits.
func (w *world) activity() string {
	ctx := context.WithoutCancel(w.t.Context())
	conn, err := pgx.Connect(ctx, w.dsn)
	if err != nil {
		return err.Error()
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, `SELECT format('%s from %s: %s, %s ms, waits for %s %s: %s', pid, client_addr, state,
		round(extract(epoch FROM clock_timestamp() - state_change) * 1000), pg_blocking_pids(pid), wait_event, left(query, 150))
		FROM pg_stat_activity WHERE application_name = 'locksteward' AND state <> 'idle' ORDER BY state_change`)
	if err != nil {
		return err.Error()
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err.Error()
	}
	return strings.Join(lines, "\n")
}
