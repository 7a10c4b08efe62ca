package agent_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/audit"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/internal/users"
	"github.com/locksteward/locksteward/store"
)

// The trail of an agent is signed, goes to its receivers over restarts and reloads,
// and is verified beside it, on both databases.
func TestTrailOutsideTheStore(t *testing.T) {
	dsn := testpg.Database(t)
	t.Parallel()
	for _, dsn := range []string{"", dsn} {
		name := "sqlite"
		if dsn != "" {
			name = "postgres"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := testredis.Start(t)
			dir := t.TempDir()
			live, anchors, key := filepath.Join(dir, "live.jsonl"), filepath.Join(dir, "anchors"), filepath.Join(dir, "audit.pem")
			if err := audit.WriteKey(key, audit.NewKey()); err != nil {
				t.Fatal(err)
			}
			public, err := audit.ReadPublicKey(key)
			if err != nil {
				t.Fatal(err)
			}
			more := ""
			if dsn != "" {
				more = ", audit_key_file: '" + key + "'"
			}
			text := target(srv.URL()) + "audit: {anchor_file: '" + anchors + "', sinks: [{name: live, file: '" + live + "'}]}\n"
			b := layBed(t, text, dsn)
			b.keys = more
			b.write(text)
			b.start()
			if dsn == "" {
				if public, err = audit.ReadPublicKey(filepath.Join(b.dir, "store.db.audit-key")); err != nil {
					t.Fatal(err)
				}
			}
			status, err := b.ana.AuditStatus(t.Context())
			if err != nil || status.KeyID != public.ID() || status.PublicKey != public.PEM() || len(status.Sinks) != 2 {
				t.Fatalf("%+v, %v", status, err)
			}
			v, err := b.ana.AuditVerify(t.Context())
			if err != nil || !v.Whole || v.Entries == 0 {
				t.Errorf("%+v, %v", v, err)
			}
			// The file is moved away; a reload opens it anew.
			testredis.Eventually(t, within, func() bool { return lines(t, live) > 0 }, "nothing goes to the sink")
			if err := os.Rename(live, live+".1"); err != nil {
				t.Fatal(err)
			}
			if err := b.agent.Reload(t.Context()); err != nil {
				t.Fatal(err)
			}
			testredis.Eventually(t, within, func() bool { return lines(t, live) > 0 }, "nothing goes to the new file")
			besides, err := store.OpenReader(t.Context(), store.Config{DSN: b.dsn})
			if err != nil {
				t.Fatal(err)
			}
			beside, err := audit.CheckStore(t.Context(), besides, audit.StoreOptions{Keys: audit.NewKeyring(public)})
			if err != nil || !beside.Whole || beside.Entries < v.Entries {
				t.Errorf("%+v, %v", beside, err)
			}
			if err := besides.Close(); err != nil {
				t.Error(err)
			}
			b.stop()
			b.start()
			b.stop()

			raw, err := os.ReadFile(anchors)
			if err != nil {
				t.Fatal(err)
			}
			ring := audit.NewKeyring(public)
			a, err := audit.ReadAnchors(strings.NewReader(string(raw)), ring)
			if err != nil || a.Signed != len(a.Places) || a.Signed < 2 {
				t.Fatalf("%+v, %v", a, err)
			}
			st, err := store.OpenReader(t.Context(), store.Config{DSN: b.dsn})
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			end, err := audit.CheckStore(t.Context(), st, audit.StoreOptions{Keys: ring, Anchors: a.Places})
			if err != nil || !end.Whole || end.Signed != end.Checkpoints || end.Head.Seq != a.Places[len(a.Places)-1].Seq {
				t.Errorf("%+v, %v: the end is not signed: %+v", end, err, a)
			}
			entries := 0
			for _, name := range []string{live + ".1", live} {
				raw, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				for line := range strings.Lines(string(raw)) {
					var e api.Entry
					if err := json.Unmarshal([]byte(line), &e); err != nil {
						t.Fatal(err)
					}
					if e.Seq > 0 {
						if entries++; e.Seq != int64(entries) {
							t.Fatalf("entry %d is the %dth", e.Seq, entries)
						}
					}
				}
			}
			if int64(entries) != end.Entries {
				t.Errorf("the sink has %d of %d entries", entries, end.Entries)
			}
		})
	}
}

func lines(t *testing.T, name string) int {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Count(string(raw), "\n")
}

// A trail that somebody was at is reported by the API, in the log, and by nobody else.
// fault: 79
func TestVerifyTellsABrokenTrail(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	b := newBed(t, target(srv.URL()))
	b.stop()
	tamper(t, b, `UPDATE entries SET actor = 'eve' WHERE seq = 1`)
	b.start()
	v, err := b.ana.AuditVerify(t.Context())
	if err != nil || v.Whole || v.BrokenAt != 1 || !strings.Contains(v.Problem, "changed") || v.Entries != 0 {
		t.Errorf("%+v, %v", v, err)
	}
	if !strings.Contains(logText(b), "the audit trail is broken") {
		t.Error("the log says nothing")
	}
	b.stop()
	tamper(t, b, `UPDATE entries SET actor = 'agent' WHERE seq = 1`)
	tamper(t, b, `UPDATE checkpoints SET signature = 'AAAA'`)
	b.start()
	if v, err = b.ana.AuditVerify(t.Context()); err != nil || v.Whole || !strings.Contains(v.Problem, "forged") {
		t.Errorf("%+v, %v", v, err)
	}
}

// Who had the agent reload stands in the trail; a signal is the agent's own.
func TestReloadStandsInTheTrail(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	b := newBed(t, target(srv.URL()))
	root := b.person("root", users.RoleAdmin) // has the agent read its users again
	if err := root.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := b.ana.AuditEntries(t.Context(), apiclient.AuditQuery{Action: "agent.reload"})
	if err != nil || len(list.Entries) != 2 || list.Entries[0].Actor != "root" || list.Entries[1].Actor != "agent" {
		t.Errorf("%+v, %v", list, err)
	}
}

// An import needs an admin, who stands in the trail.
func TestImportThroughTheAPI(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	b := newBed(t, target(srv.URL()))
	root := b.person("root", users.RoleAdmin)
	in := api.AuditImport{File: "night.jsonl", Lines: []string{
		`{"seq":0,"at":"2026-11-01T03:00:00Z","actor":"ops","action":"unlock.outcome","target":"redis","key":"lock:a","subject":"u-1","reason":"night","outcome":"released","detail":null,"prev_hash":"","hash":""}`,
	}}
	if _, err := b.bo.AuditImport(t.Context(), in); !errors.Is(err, locksteward.ErrRefused) {
		t.Errorf("an approver: %v", err)
	}
	for i, want := range []api.AuditImported{{Imported: 1}, {Known: 1}} {
		if got, err := root.AuditImport(t.Context(), in); err != nil || got != want {
			t.Errorf("%d: %+v, %v", i, got, err)
		}
	}
	bad := in
	bad.Lines = append([]string{"{}"}, in.Lines...)
	if _, err := root.AuditImport(t.Context(), bad); !errors.Is(err, locksteward.ErrInvalid) || !strings.Contains(fmt.Sprint(err), "line 1: ") {
		t.Errorf("%v", err)
	}
	list, err := b.ana.AuditEntries(t.Context(), apiclient.AuditQuery{Key: "lock:a"})
	if err != nil || len(list.Entries) != 1 || list.Entries[0].Actor != "ops (imported by root)" {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err = b.ana.AuditEntries(t.Context(), apiclient.AuditQuery{Action: "audit.import"}); err != nil || len(list.Entries) != 1 || list.Entries[0].Actor != "root" {
		t.Errorf("%+v, %v", list, err)
	}
	// Pages follow one another, in both directions.
	for _, ascending := range []bool{false, true} {
		var seqs []int64
		q := apiclient.AuditQuery{Limit: 1, Ascending: ascending}
		for {
			page, err := b.ana.AuditEntries(t.Context(), q)
			if err != nil || len(page.Entries) > 1 {
				t.Fatalf("%+v, %v", page, err)
			}
			for _, e := range page.Entries {
				seqs = append(seqs, e.Seq)
			}
			if page.Next == 0 {
				break
			}
			if ascending {
				q.After = page.Next
			} else {
				q.Before = page.Next
			}
		}
		if len(seqs) < 4 || seqs[0] == 1 != ascending || seqs[len(seqs)-1] == 1 == ascending {
			t.Errorf("ascending %v: %v", ascending, seqs)
		}
	}
}

// tamper is somebody with access to the file of a store.
func tamper(t *testing.T, b *bed, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+strings.TrimPrefix(b.dsn, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}
