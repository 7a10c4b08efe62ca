package audit_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/audit"
	"github.com/locksteward/locksteward/store"
)

var update = flag.Bool("update", false, "rewrite the example in docs/audit.md")

// block is the part of the page behind a mark, or with a language.
func block(t *testing.T, doc, pattern string) string {
	t.Helper()
	m := regexp.MustCompile("(?s)" + pattern + "\n(.*?)```").FindStringSubmatch(doc)
	if m == nil {
		t.Fatalf("the page has no %s", pattern)
	}
	return m[1]
}

// The example of the page verifies: by this package, and by the Python of the page;
// and its hash is that of the bytes which the page shows.
func TestDocumentedExample(t *testing.T) {
	t.Parallel()
	page := filepath.Join("..", "..", "docs", "audit.md")
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	doc := string(raw)
	if *update {
		doc = exampleInto(t, doc)
		if err := os.WriteFile(page, []byte(doc), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	public := filepath.Join(t.TempDir(), "audit.pub")
	if err := os.WriteFile(public, []byte(block(t, doc, "<!-- key -->\n```text")), 0o600); err != nil {
		t.Fatal(err)
	}
	key, err := audit.ReadPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	example := block(t, doc, "<!-- export -->\n```json")
	found, err := audit.CheckExport(strings.NewReader(example), audit.CheckOptions{Keys: audit.NewKeyring(key)})
	if err != nil || found.Entries != 2 || found.Signed != 1 {
		t.Fatalf("%+v, %v; go test ./internal/audit -run Documented -update rewrites it", found, err)
	}
	var first api.Entry
	if err := json.Unmarshal([]byte(strings.Split(example, "\n")[1]), &first); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(strings.TrimSuffix(block(t, doc, "<!-- hashed -->\n```text"), "\n")))
	if hex.EncodeToString(sum[:]) != first.Hash {
		t.Error("the hash of the first entry is not that of the bytes which the page shows")
	}
	if !strings.Contains(doc, opensslCheck) {
		t.Error("the commands of openssl on the page are not those of the test")
	}
	python(t, block(t, doc, "```python"), example)
}

func python(t *testing.T, script, example string) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("SKIPPED: no python3 here")
	}
	s := openStore(t)
	appendMany(t, s, 0, 30)
	sign(t, s, nil)
	long := string(export(t, s, audit.ExportOptions{From: 5}))
	for name, c := range map[string]struct {
		in   string
		good bool
	}{
		"the example": {example, true}, "another": {long, true},
		"changed": {strings.Replace(example, `"actor":"ana"`, `"actor":"eve"`, 1), false},
		"detail":  {strings.Replace(long, `"detail_b64":"e`, `"detail_b64":"f`, 1), false},
		"cut off": {long[:len(long)/2], false},
		"dropped": {strings.Replace(long, strings.SplitAfter(long, "\n")[4], "", 1), false},
	} {
		cmd := exec.CommandContext(t.Context(), "python3", "-c", script)
		cmd.Stdin = strings.NewReader(c.in)
		if out, err := cmd.CombinedOutput(); (err == nil) != c.good {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}

// exampleInto makes the example anew.
func exampleInto(t *testing.T, doc string) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	k, err := audit.ReadKey(file)
	if err != nil {
		t.Fatal(err)
	}
	s := openStore(t)
	at := time.Date(2026, 11, 21, 16, 0, 0, 123456000, time.UTC)
	first := locksteward.Entry{
		At: at, Actor: "ana", Action: "release.request", Target: "orders", Key: "lock:order:42", Subject: "r-7", Reason: "pod is gone", Outcome: "pending",
		Detail: json.RawMessage(`{"class":"orders"}`),
	}
	second := first
	second.At, second.Actor, second.Action, second.Reason, second.Outcome, second.Detail = at.Add(time.Minute), "bo", "release.approve", "checked", "approved", nil
	if err := s.AppendEntries(t.Context(), first, second); err != nil {
		t.Fatal(err)
	}
	head, err := s.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SaveCheckpoint(t.Context(), audit.Sign(&k, head, at.Add(time.Hour))); err != nil {
		t.Fatal(err)
	}
	first.Seq = 1
	for mark, text := range map[string]string{
		"<!-- export -->\n```json\n": string(export(t, s, audit.ExportOptions{})), "<!-- key -->\n```text\n": k.Public().PEM(),
		"<!-- hashed -->\n```text\n": hashed(first) + "\n",
	} {
		before, rest, ok := strings.Cut(doc, mark)
		_, after, end := strings.Cut(rest, "```\n")
		if !ok || !end {
			t.Fatalf("the page has no %q", mark)
		}
		doc = before + mark + text + "```\n" + after
	}
	return doc
}

// hashed is what the page says that a hash covers, made from its words.
func hashed(e locksteward.Entry) string {
	var out strings.Builder
	out.WriteString("locksteward-entry-1 ")
	for _, field := range []string{
		itoa(e.Seq), itoa(e.At.UnixMicro()), e.Actor, e.Action, e.Target, e.Key, e.Subject, e.Reason, e.Outcome, string(e.Detail), e.PrevHash,
	} {
		out.WriteString(itoa(int64(len(field))) + ":" + field)
	}
	return out.String()
}

func itoa(n int64) string { raw, _ := json.Marshal(n); return string(raw) }

// What the page says of the hash is what the store does.
func TestHashIsAsDocumented(t *testing.T) {
	t.Parallel()
	e := locksteward.Entry{Seq: 3, At: time.UnixMicro(17), Actor: "ä", Key: "\x00\xff", Detail: json.RawMessage(`{}`), PrevHash: "ab"}
	sum := sha256.Sum256([]byte(hashed(e)))
	if want := hex.EncodeToString(sum[:]); store.HashEntry(e) != want {
		t.Errorf("%s, want %s", store.HashEntry(e), want)
	}
}
