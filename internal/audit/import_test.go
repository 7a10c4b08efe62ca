package audit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/alert"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/audit"
	"github.com/locksteward/locksteward/store"
)

func entryWith(reason string) locksteward.Entry {
	return locksteward.Entry{At: time.Unix(99, 0), Actor: "ana", Action: "release.request", Subject: "r-long", Reason: reason}
}

// byHand is a line as `locksteward unlock` writes it.
func byHand(t *testing.T, e locksteward.Entry) string {
	t.Helper()
	raw, err := json.Marshal(api.NewEntry(e))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func unlocked(action, outcome string) locksteward.Entry {
	return locksteward.Entry{
		At: time.Date(2026, 11, 1, 3, 0, 0, 5000, time.UTC), Actor: "ops", Action: action, Target: "redis", Key: "lock:\xff", Subject: "u-1",
		Reason: "at night", Outcome: outcome, Detail: json.RawMessage(`{"library":"token"}`),
	}
}

// What was done by hand comes into the trail once, with who did it, when, and who
// vouches for it.
func TestImport(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	trail := newTrail(t, s, audit.DefaultConfig(), audit.Options{})
	in := api.AuditImport{File: "locksteward-audit.jsonl", Lines: []string{
		byHand(t, unlocked("unlock.intent", "")), "", byHand(t, unlocked("unlock.outcome", "released")),
	}}
	for i, want := range []api.AuditImported{{Imported: 2}, {Known: 2}} {
		if got, err := trail.Import(t.Context(), "root", in); err != nil || got != want {
			t.Fatalf("%d: %+v, %v", i, got, err)
		}
	}
	in.Lines, in.Target = append(in.Lines, byHand(t, unlocked("unlock.outcome", "changed"))), "orders"
	if got, err := trail.Import(t.Context(), "root", in); err != nil || got != (api.AuditImported{Imported: 1, Known: 2}) {
		t.Fatalf("%+v, %v", got, err)
	}
	list, err := s.Entries(t.Context(), store.EntryQuery{Ascending: true})
	if err != nil || len(list) != 5 {
		t.Fatalf("%+v, %v", list, err)
	}
	e := list[1]
	if e.Actor != "ops (imported by root)" || e.Action != "unlock.outcome" || e.Key != "lock:\xff" || e.Outcome != "released" || e.Target != "redis" || time.Since(e.At) > time.Minute {
		t.Errorf("%+v", e)
	}
	for _, want := range []string{`"imported_by":"root"`, `"at":"2026-11-01T03:00:00.000005Z"`, `"actor":"ops"`, `"line":3`, `"detail":{"library":"token"}`, `"file":"locksteward-audit.jsonl"`} {
		if !strings.Contains(string(e.Detail), want) {
			t.Errorf("%s lacks %s", e.Detail, want)
		}
	}
	if a := list[2]; a.Action != audit.ActionImport || a.Actor != "root" || a.Subject != "locksteward-audit.jsonl" || string(a.Detail) != `{"imported":2,"known":0}` {
		t.Errorf("%+v: %s", a, a.Detail)
	}
	if list[3].Target != "orders" {
		t.Errorf("%+v", list[3])
	}
	if v, err := trail.Verify(t.Context()); err != nil || !v.Whole {
		t.Errorf("%+v, %v", v, err)
	}
}

// Lines that are wrong are all named, and nothing is taken in.
func TestImportRefuses(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	trail := newTrail(t, s, audit.DefaultConfig(), audit.Options{})
	good := unlocked("unlock.intent", "")
	change := func(fn func(e *locksteward.Entry)) string {
		e := good
		fn(&e)
		return byHand(t, e)
	}
	bad := map[string]string{
		"hello":                    "cannot be read",
		byHand(t, good) + "{}":     "more follows",
		`{"seq":0,"evil":1}`:       "evil",
		`{"key_b64":"%%"}`:         "key_b64",
		strings.Repeat("x", 70000): "longer than",
		change(func(e *locksteward.Entry) { e.Action = "release.approve" }):         "unlock.intent and unlock.outcome",
		change(func(e *locksteward.Entry) { e.Seq, e.Hash = 3, "h" }):               "an export is not imported",
		change(func(e *locksteward.Entry) { e.At = time.Time{} }):                   "when was it done",
		change(func(e *locksteward.Entry) { e.At = time.Now().Add(9 * time.Hour) }): "in the future",
		change(func(e *locksteward.Entry) { e.Actor = "" }):                         "actor",
	}
	in := api.AuditImport{FirstLine: 11, Lines: []string{byHand(t, good)}}
	var says []string
	for line, text := range bad {
		in.Lines, says = append(in.Lines, line), append(says, text)
	}
	_, err := trail.Import(t.Context(), "root", in)
	if !errors.Is(err, locksteward.ErrInvalid) {
		t.Fatal(err)
	}
	for i, text := range says {
		found := false
		for line := range strings.Lines(err.Error()) {
			found = found || strings.HasPrefix(line, fmt.Sprintf("line %d: ", 12+i)) && strings.Contains(line, text)
		}
		if !found {
			t.Errorf("line %d is not said to be %q: %v", 12+i, text, err)
		}
	}
	if head, err := s.Head(t.Context()); err != nil || head.Seq != 0 {
		t.Errorf("%d entries, %v", head.Seq, err)
	}
	many := api.AuditImport{Lines: make([]string, 6000)}
	if _, err := trail.Import(t.Context(), "root", many); !errors.Is(err, locksteward.ErrInvalid) {
		t.Errorf("%v", err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	if err := audit.DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	good := audit.DefaultConfig()
	good.AnchorFile = "anchors"
	for i, url := range []string{"unix:///dev/log", "udp://127.0.0.1:514", "tcp://[::1]:601", "tls://siem.internal:6514"} {
		good.Sinks = append(good.Sinks, audit.SinkConfig{Name: fmt.Sprint("s", i), Syslog: url})
	}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	bad := audit.Config{CheckpointEvery: time.Second, CheckpointEntries: 0, AnchorFile: "a", Sinks: []audit.SinkConfig{
		{},
		{Name: "anchor", File: "x"},
		{Name: "x", Stdout: true},
		{Name: "x", Stdout: true},
		{Name: "y", File: "a", Stdout: true},
		{Name: "z", File: "a"},
		{Name: "u", Syslog: "http://h"},
		{Name: "v", Syslog: "udp://h"},
		{Name: "w", Syslog: "unix://h"},
		{Name: "h", Webhook: &alert.Endpoint{}},
	}}
	err := bad.Validate()
	for _, want := range []string{
		"checkpoint_every: got 1s", "checkpoint_entries: got 0", "sinks[0].name: empty", "sinks[0]: got 0 receivers", "sinks[1].name: got \"anchor\"",
		"sinks[3].name: got \"x\"", "sinks[3].stdout: another", "sinks[4]: got 2", "sinks[5].file: got \"a\"", "sinks[6].syslog", "sinks[7].syslog", "sinks[8].syslog",
		"sinks[9].webhook.url_file: is missing",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
}
