package releaser_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/locksteward/locksteward/source/redis/releaser"
)

func TestACLEscapesPrefixes(t *testing.T) {
	t.Parallel()
	rules := strings.Join(releaser.ACL([]string{"lock:*"}, []string{"a*b:"}), " ")
	for _, want := range []string{"-@all", "~lock:*", `~a\*b:exec:*`, `~a\*b:hold:*`, `&a\*b:wake:*`, `&a\*b:instance:*`, "&redisson_lock__channel:*"} {
		if !strings.Contains(rules, want) {
			t.Errorf("%q is not in %q", want, rules)
		}
	}
	if regexp.MustCompile(`\+(scan|keys|@all|evalsha|flush|config)\b`).MatchString(rules) {
		t.Errorf("too many rights: %s", rules)
	}
}

func TestDocsPrintTheACL(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../../docs/release.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(raw), "ACL SETUSER releaser on >PASSWORD resetkeys\n")
	block, _, closed := strings.Cut(block, "```")
	if got, want := strings.Fields(block), releaser.ACL([]string{"lock:order:*"}, nil); !found || !closed || !slices.Equal(got, want) {
		t.Errorf("docs/release.md has\n%q, ACL is\n%q", got, want)
	}
}

// What the scripts of the libraries call, the user may call.
func TestACLCoversTheScripts(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../formats/*.lua")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	rules := releaser.ACL([]string{"lock:*"}, nil)
	call := regexp.MustCompile(`redis\.p?call\('([A-Za-z]+)'`)
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range call.FindAllSubmatch(raw, -1) {
			if want := "+" + strings.ToLower(string(m[1])); !slices.Contains(rules, want) {
				t.Errorf("%s calls %s, which the ACL does not grant", path, m[1])
			}
		}
	}
}
