package audit_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/audit"
	"github.com/locksteward/locksteward/store"
)

func TestKeysAreKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "audit.pem")
	k := audit.NewKey()
	if err := audit.WriteKey(file, k); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	back, err := audit.ReadKey(file)
	if err != nil || back.Public().ID() != k.Public().ID() {
		t.Fatalf("%v", err)
	}
	if err := audit.WriteKey(file, audit.NewKey()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a key was replaced: %v", err)
	}
	public := filepath.Join(dir, "audit.pub")
	if err := os.WriteFile(public, []byte(k.Public().PEM()), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{public, file} {
		if p, err := audit.ReadPublicKey(from); err != nil || p.ID() != k.Public().ID() {
			t.Errorf("%s: %v", from, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	for _, shown := range []string{fmt.Sprint(k), fmt.Sprintf("%#v", k), fmt.Sprintf("%+v", &k)} {
		if strings.ContainsAny(shown, "0123456789") {
			t.Errorf("the key is shown: %s", shown)
		}
	}
	// A file that others can read is no secret, and one that is something else no key.
	for name, c := range map[string]struct {
		content string
		mode    os.FileMode
		says    string
	}{
		"open":    {"", 0o644, "chmod 600"},
		"no PEM":  {"hunter2", 0o600, "not PEM"},
		"another": {"-----BEGIN PRIVATE KEY-----\naHVudGVyMg==\n-----END PRIVATE KEY-----\n", 0o600, "no Ed25519 key"},
		"public":  {k.Public().PEM(), 0o600, "no Ed25519 key"},
	} {
		bad := filepath.Join(dir, name)
		if err := os.WriteFile(bad, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(bad, c.mode); err != nil {
			t.Fatal(err)
		}
		if _, err := audit.ReadKey(bad); err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The key of a store: configured, beside a file, or none.
func TestOpenKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := store.Config{DSN: "sqlite:" + filepath.Join(dir, "a.db")}
	k, unsigned, err := audit.OpenKey(cfg)
	if err != nil || k == nil || unsigned != "" {
		t.Fatalf("%q, %v", unsigned, err)
	}
	again, _, err := audit.OpenKey(cfg)
	if err != nil || again.Public().ID() != k.Public().ID() {
		t.Errorf("another key: %v", err)
	}
	if info, err := os.Stat(filepath.Join(dir, "a.db.audit-key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v", err)
	}
	for _, dsn := range []string{"postgres://u@h/db", "sqlite::memory:"} {
		if k, unsigned, err := audit.OpenKey(store.Config{DSN: dsn}); err != nil || k != nil || unsigned == "" {
			t.Errorf("%s: %v, %q, %v", dsn, k, unsigned, err)
		}
	}
	cfg = store.Config{DSN: "postgres://u@h/db", AuditKeyFile: filepath.Join(dir, "a.db.audit-key")}
	if k, _, err := audit.OpenKey(cfg); err != nil || k == nil {
		t.Errorf("%v", err)
	}
	cfg.AuditKeyFile += "-missing"
	if _, _, err := audit.OpenKey(cfg); err == nil || !strings.Contains(err.Error(), "store.audit_key_file") {
		t.Errorf("%v", err)
	}
	if err := audit.CheckKeyFile(cfg); err == nil || !strings.HasPrefix(err.Error(), "audit_key_file: ") {
		t.Errorf("%v", err)
	}
}

// A checkpoint is checked with openssl as well, as docs/audit.md says.
func TestCheckpointsAreSigned(t *testing.T) {
	t.Parallel()
	k, other := audit.NewKey(), audit.NewKey()
	place := store.Checkpoint{Seq: 42, Hash: strings.Repeat("ab", 32)}
	c := audit.Sign(&k, place, time.Date(2026, 11, 21, 16, 0, 0, 987654321, time.UTC))
	line := audit.Line(c)
	back, err := audit.ParseLine(line)
	if err != nil || back != c {
		t.Fatalf("%+v, %v; want %+v", back, err, c)
	}
	ring := audit.NewKeyring(k.Public())
	if good, err := ring.Check(back); err != nil || !good {
		t.Errorf("%v, %v", good, err)
	}
	if good, err := audit.NewKeyring(other.Public()).Check(back); err != nil || good {
		t.Errorf("another's: %v, %v", good, err)
	}
	for name, forged := range map[string]func(c *store.SignedCheckpoint){
		"seq": func(c *store.SignedCheckpoint) { c.Seq++ }, "hash": func(c *store.SignedCheckpoint) { c.Hash = strings.Repeat("ac", 32) },
		"time": func(c *store.SignedCheckpoint) { c.At = c.At.Add(time.Second) }, "signature": func(c *store.SignedCheckpoint) { c.Signature = "AAAA" },
		"key": func(c *store.SignedCheckpoint) {
			x := audit.Sign(&other, place, c.At)
			c.Signature = x.Signature
		},
	} {
		changed := c
		forged(&changed)
		if good, err := ring.Check(changed); good || err == nil {
			t.Errorf("%s passed", name)
		}
	}
	unsigned := audit.Sign(nil, place, time.Now())
	if back, err := audit.ParseLine(audit.Line(unsigned)); err != nil || back != unsigned || !strings.HasSuffix(audit.Line(unsigned), " - -") {
		t.Errorf("%+v, %v", back, err)
	}
	for _, bad := range []string{
		"", "x", strings.Replace(line, "-1 ", "-2 ", 1), strings.Replace(line, " 42 ", " 042 ", 1), strings.Replace(line, "ab", "AB", 1), line + " ",
		strings.Replace(line, ".987654Z", "Z", 1), strings.TrimSuffix(line, c.Signature) + "-", strings.Replace(line, " ", "  ", 1),
	} {
		if _, err := audit.ParseLine(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
	openssl(t, k, line)
}

func openssl(t *testing.T, k audit.Key, line string) {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("SKIPPED: no openssl here")
	}
	dir := t.TempDir()
	for name, content := range map[string]string{"audit.pub": k.Public().PEM(), "line": line + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for script, good := range map[string]bool{opensslCheck: true, strings.Replace(opensslCheck, "signed\n", "signed; echo >> signed\n", 1): false} {
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); (err == nil) != good {
			t.Errorf("%s: %v: %s", script, err, out)
		}
	}
	id, err := exec.CommandContext(t.Context(), "sh", "-c", "openssl pkey -pubin -outform DER < "+filepath.Join(dir, "audit.pub")+" | sha256sum | cut -c1-16").Output()
	if err != nil || "ed25519:"+strings.TrimSpace(string(id)) != k.Public().ID() {
		t.Errorf("openssl names the key %s, %v; want %s", id, err, k.Public().ID())
	}
}

// opensslCheck is as docs/audit.md has it.
const opensslCheck = `printf %s "$(cut -d' ' -f1-5 line)" > signed
cut -d' ' -f6 line | base64 -d > signature
openssl pkeyutl -verify -pubin -inkey audit.pub -rawin -in signed -sigfile signature
`
