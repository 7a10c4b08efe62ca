package locksteward_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/lock/lockprom"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// pages returns the Markdown files of the repository, without the change log
// and the decisions, which also speak of what is no more.
func pages(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	walk(t, func(p string) {
		if !strings.HasSuffix(p, ".md") || p == "CHANGELOG.md" || strings.HasPrefix(p, "docs/adr/") {
			return
		}
		raw, err := os.ReadFile(filepath.FromSlash(p))
		if err != nil {
			t.Fatal(err)
		}
		out[p] = string(raw)
	})
	if out["README.md"] == "" {
		t.Fatal("no README.md found: is the test run from the root?")
	}
	return out
}

func TestLinksInPagesResolve(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`)
	for page, text := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			to := m[1]
			if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
				continue
			}
			if !exists(filepath.FromSlash(path.Join(path.Dir(page), to))) {
				t.Errorf("%s links to %s, which is not there", page, to)
			}
		}
	}
}

// A rule that a page names is a rule, and each rule has its page and fixtures.
func TestPagesNameRealRules(t *testing.T) {
	t.Parallel()
	names := rules.Names()
	groups := map[string]bool{}
	for _, name := range names {
		group, _, _ := strings.Cut(name, "/")
		groups[group] = true
		if !exists(filepath.FromSlash("docs/rules/" + name + ".md")) {
			t.Errorf("rule %s has no page docs/rules/%s.md", name, name)
		}
		if !exists(filepath.Join("rules", "testdata", strings.ReplaceAll(name, "/", "-"))) {
			t.Errorf("rule %s has no fixtures", name)
		}
	}
	id := regexp.MustCompile("`([a-z]+)/([a-z-]+)`")
	for page, text := range pages(t) {
		for _, m := range id.FindAllStringSubmatch(text, -1) {
			name := m[1] + "/" + m[2]
			if groups[m[1]] && !slices.Contains(names, name) {
				t.Errorf("%s names the rule %s, which does not exist", page, name)
			}
		}
	}
}

func TestPagesNameRealMetrics(t *testing.T) {
	t.Parallel()
	real := map[string]bool{}
	for _, m := range exporter.Metrics() {
		real[m.Name] = true
	}
	for _, m := range lockprom.Metrics() {
		real[m.Name] = true
	}
	metric := regexp.MustCompile(`\blocksteward_[a-z0-9_]*[a-z0-9]\b`)
	for page, text := range pages(t) {
		for _, name := range metric.FindAllString(text, -1) {
			base := name
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				base = strings.TrimSuffix(base, suffix)
			}
			if !real[name] && !real[base] {
				t.Errorf("%s names the metric %s, which does not exist", page, name)
			}
		}
	}
}

func TestEveryFormatHasItsPage(t *testing.T) {
	t.Parallel()
	for _, d := range formats.All() {
		if !exists(filepath.FromSlash("docs/libraries/" + d.Name + ".md")) {
			t.Errorf("format %s has no page", d.Name)
		}
		if !exists(filepath.Join("source", "redis", "formats", "testdata", d.Name)) {
			t.Errorf("format %s has no fixtures", d.Name)
		}
	}
}

// A page never names what only this machine has, nor where packages come from.
func TestPagesAndFilesAreForEverybody(t *testing.T) {
	t.Parallel()
	private := regexp.MustCompile(`/work/(main|shared|\.library)|/root/|proxy\.golang\.org|registry\.npmjs|deb\.debian\.org`)
	walk(t, func(p string) {
		if p == "repo_docs_test.go" || p == "go.sum" {
			return
		}
		raw, err := os.ReadFile(filepath.FromSlash(p))
		if err != nil {
			t.Fatal(err)
		}
		if found := private.Find(raw); found != nil {
			t.Errorf("%s names %s", p, found)
		}
	})
}

// A page that names the test of a promise keeps its word.
func TestPagesNameRealTests(t *testing.T) {
	t.Parallel()
	real := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]*)\(`)
	for _, s := range sources(t) {
		if !s.test {
			continue
		}
		for _, m := range declared.FindAllSubmatch(s.raw, -1) {
			real[string(m[1])] = true
		}
	}
	named := regexp.MustCompile("`(Test[A-Za-z0-9_]*)`")
	for page, text := range pages(t) {
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			if !real[m[1]] {
				t.Errorf("%s names %s, which does not exist", page, m[1])
			}
		}
	}
}
