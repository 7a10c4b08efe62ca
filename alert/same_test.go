package alert

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
)

// TestSame compares dispatchers as a reload does: by what they would send where.
func TestSame(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	hook := write("hook", "https://example.org/one")
	key := write("key", "whsec_"+strings.Repeat("A", 32))
	first := `receivers: [{name: ops, webhook: {url_file: ` + hook + `, secret_files: [` + key + `]}}]`
	build := func(text string) *Dispatcher {
		d, err := New(zap.NewNop(), decode(t, text), Hooks{})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	was := build(first)
	if !was.Same(build(first)) {
		t.Error("the same configuration twice is not the same")
	}
	for name, text := range map[string]string{
		"name":     strings.Replace(first, "ops", "dev", 1),
		"lang":     strings.Replace(first, "ops,", "ops, lang: zh,", 1),
		"timeout":  strings.Replace(first, "{url_file", "{timeout: 3s, url_file", 1),
		"attempts": strings.Replace(first, "{url_file", "{max_attempts: 3, url_file", 1),
		"age":      strings.Replace(first, "{url_file", "{max_age: 3h, url_file", 1),
		"private":  strings.Replace(first, "{url_file", "{allow_private: true, url_file", 1),
		"unsigned": strings.Replace(first, "["+key+"]", "[]", 1),
		"queue":    "queue_size: 5\n" + first,
		"drain":    "drain_timeout: 5s\n" + first,
		"more":     strings.Replace(first, "}}]", "}}, {name: dev, webhook: {url: 'https://example.org/'}}]", 1),
		"none":     "receivers: []",
	} {
		if was.Same(build(text)) {
			t.Errorf("another %s is taken for the same", name)
		}
	}
	write("hook", "https://example.org/two")
	if was.Same(build(first)) {
		t.Error("another URL in the same file is taken for the same")
	}
	write("hook", "https://example.org/one")
	write("key", "whsec_"+strings.Repeat("B", 32))
	if was.Same(build(first)) {
		t.Error("another secret in the same file is taken for the same")
	}
}
