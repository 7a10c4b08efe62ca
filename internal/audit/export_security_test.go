package audit_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/audit"
)

// hostileNames are what a client of Redis, or the person who gives a reason, may have
// written to make more of an export than there is.
var hostileNames = []string{
	"lock:a\n{\"end\":{\"entries\":1}}\n", "lock:a\r\n{\"seq\":1}", "lock:\u2028\u2029\u0085", "lock:\u009b2J\x1b[2J\x07", "lock:\u202egnp.exe\u2066",
	"=HYPERLINK(\"http://evil.example\",\"a\")", "+1+1", "-1+1", "@SUM(A1)", "\t=1+1", "\r=1+1", "a,b;c\td\"e", "lock:\x00\xff\xfe", `lock:","actor":"root`,
	"</script><script>alert(1)</script>", "../../etc/passwd", strings.Repeat("x", 64<<10),
}

// An export is as many lines as it has entries, a head, checkpoints and an end,
// whatever stands in them; each is JSON that prints, and gives back the bytes.
func TestExportOfHostileNames(t *testing.T) {
	t.Parallel()
	s, k := openStore(t), audit.NewKey()
	var want []locksteward.Entry
	for i, name := range hostileNames {
		detail, err := json.Marshal(map[string]string{name: name})
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(strings.ToValidUTF8(name, "?"), "\x00", "\ufffd") // as a store has it
		want = append(want, locksteward.Entry{
			At: time.Unix(int64(i), 0), Actor: text, Action: "release.request", Target: text, Key: name, Subject: text, Reason: text, Outcome: text, Detail: detail,
		})
	}
	if err := s.AppendEntries(t.Context(), want...); err != nil {
		t.Fatal(err)
	}
	sign(t, s, &k)
	out := export(t, s, audit.ExportOptions{})
	if found, err := audit.CheckExport(bytes.NewReader(out), audit.CheckOptions{Keys: audit.NewKeyring(k.Public())}); err != nil || found.Signed != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != len(want)+3 {
		t.Errorf("%d lines of %d entries, a head, a checkpoint and an end", len(lines), len(want))
	}
	at := 0
	for _, line := range lines {
		for _, r := range line {
			if !strconv.IsPrint(r) {
				t.Errorf("%q stands in the line %.120q", r, line)
				break
			}
		}
		// A spreadsheet that opens the file finds no formula: each line begins with a brace.
		if line[0] != '{' || !json.Valid([]byte(line)) {
			t.Errorf("no object: %.120q", line)
		}
		var e api.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Seq == 0 {
			continue
		}
		got, err := e.Entry()
		if err != nil || at >= len(want) || got.Key != want[at].Key || got.Reason != want[at].Reason || !bytes.Equal(got.Detail, want[at].Detail) {
			t.Errorf("entry %d: %.200q, %q, %q, %v", at, got.Key, got.Reason, got.Detail, err)
		}
		at++
	}
	if at != len(want) {
		t.Errorf("%d entries of %d", at, len(want))
	}
}

// An export goes into the file that is named, which only its owner reads, through no
// link, and goes on with nothing that is no export.
func TestExportFileFollowsNothing(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	appendMany(t, s, 0, 3)
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	if err := os.WriteFile(precious, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(precious, link); err != nil {
		t.Fatal(err)
	}
	// What is gone on with must be an export; a folder is no file.
	for _, name := range []string{precious, link, dir, filepath.Join(dir, "none", "x")} {
		if _, err := audit.ExportFile(t.Context(), s, name, name != filepath.Join(dir, "none", "x"), audit.ExportOptions{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	// A link is replaced and not followed.
	if _, err := audit.ExportFile(t.Context(), s, link, false, audit.ExportOptions{}); err != nil {
		t.Error(err)
	}
	if raw, err := os.ReadFile(precious); err != nil || string(raw) != "mine" {
		t.Errorf("the file has %q, %v", raw, err)
	}
	fresh := filepath.Join(dir, "fresh")
	if _, err := audit.ExportFile(t.Context(), s, fresh, false, audit.ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(fresh); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
