package grafana

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"html"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var picture = flag.String("picture", "", "write a picture of what is shown to this file")

// sample is a series of the answer to a panel's query.
type sample struct {
	Labels map[string]string `json:"labels"`
	Value  float64           `json:"value"`
}

// situation is what Prometheus answers: the series of the console's address, as query_result writes it, and that of each panel.
type situation struct {
	Name    string              `json:"name"`
	Console string              `json:"console"`
	Panels  map[string][]sample `json:"panels"`
}

func one(value float64, labels ...string) []sample {
	s := sample{map[string]string{}, value}
	for i := 0; i < len(labels); i += 2 {
		s.Labels[labels[i]] = labels[i+1]
	}
	return []sample{s}
}

func finding(order, severity, class, rule, page string, n float64) sample {
	return one(n, "order", order, "severity", severity, "class", class, "rule", rule, "page", page, "of", "class="+class, "target", "main", "risk", "")[0]
}

const (
	known   = `{__name__="locksteward_console_info",instance="a:10121",job="locksteward",url="https://locks.example"} 1 1700000000000`
	unknown = `{url="https://github.com/locksteward/locksteward/blob/main/grafana/README.md?console="} 1 1700000000000`
	oddKey  = "lock:order:42/é&b"
)

var situations = []situation{
	{"trouble", known, map[string][]sample{
		"Firing now": {
			finding("2", "warning", "orders", "renewal/late", "class", 57), finding("1", "critical", "orders", "ttl/none", "class", 2),
			finding("3", "info", "jobs", "contention/high", "class", 1), finding("1", "critical", "", "server/flushed", "agent", 1),
		},
		"Locks held longest": append(one(93784, "key", oddKey, "class", "orders", "target", "main"),
			one(620, "key", "lock:order:"+strings.Repeat("long", 30), "class", "orders", "target", "main")...),
		"Targets":           append(one(1, "target", "payments", "state", "is down"), one(1, "target", "search", "state", "was never swept")...),
		"Critical findings": one(3), "Locks": one(1312), "Oldest full sweep": one(431, "target", "search"), "Team": one(1, "team", "checkout"),
		"Configuration": one(0), "Running version": one(1, "version", "0.1.0"),
	}},
	{"well", unknown, map[string][]sample{
		"Targets":            one(0, "state", "All are up and swept"),
		"Critical findings":  one(0),
		"Locks held longest": append(one(61, "class", "jobs", "target", "main"), one(2, "class", "orders", "target", "main")...),
	}},
	{"unknown", unknown, map[string][]sample{}},
}

type seenLink struct{ Text, URL string }

type seenPanel struct {
	Text    string
	Columns []string
	Rows    [][]string
	Colors  []string
	Links   []seenLink
	Cut     bool
}

// seenBoard is what a person sees of a dashboard in a situation.
type seenBoard struct {
	Case, Board, Console string
	Links                []string
	Panels               map[string]seenPanel
}

// TestWhatIsSeen renders the tables, stats and variables.
func TestWhatIsSeen(t *testing.T) {
	t.Parallel()
	all := render(t)
	at := func(name, board string) seenBoard {
		i := slices.IndexFunc(all, func(b seenBoard) bool { return b.Case == name && b.Board == board })
		if i < 0 {
			t.Fatalf("%s is not shown for %q", board, name)
		}
		return all[i]
	}
	for _, b := range all {
		for title, p := range b.Panels {
			if p.Cut {
				t.Errorf("%s, %s: table %q has columns that are cut off", b.Board, b.Case, title)
			}
			if p.Text == "" && (b.Case != "unknown" || title != "Targets") { // its query answers always
				t.Errorf("%s, %s: panel %q shows nothing", b.Board, b.Case, title)
			}
			for _, l := range p.Links {
				if strings.Contains(l.URL, "${") || strings.Contains(l.URL, "class=All") {
					t.Errorf("%s, %s: panel %q leads to %s", b.Board, b.Case, title, l.URL)
				}
			}
		}
		for _, l := range b.Links {
			if strings.Contains(l, "var-class") || strings.Contains(l, "${") {
				t.Errorf("%s: leads to %s", b.Board, l)
			}
		}
		want := "https://locks.example/findings"
		if b.Case != "trouble" {
			want = "https://github.com/locksteward/locksteward/blob/main/grafana/README.md?console=/findings"
		}
		if b.Console != want {
			t.Errorf("%s, %s: findings are at %s, want %s", b.Board, b.Case, b.Console, want)
		}
	}

	fleet := at("trouble", "locksteward-fleet")
	firing := fleet.Panels["Firing now"]
	if got, want := fmt.Sprint(firing.Columns), "[severity class rule target risk findings]"; got != want {
		t.Errorf("Firing now has columns %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(firing.Rows), "[[critical orders ttl/none main  2] [critical (the target) server/flushed main  1] [warning orders renewal/late main  57] [info jobs contention/high main  1]]"; got != want {
		t.Errorf("Firing now shows %s, want %s", got, want)
	}
	if c := firing.Colors; len(c) != 4 || c[0] != c[1] || c[1] == c[2] || c[2] == c[3] || c[3] == c[0] {
		t.Errorf("severities have the colours %v, want one for each", c)
	}
	leads(t, firing, "orders", "/d/locksteward-class?", "var-class=orders")
	leads(t, firing, "(the target)", "/d/locksteward-agent?", "var-target=main")
	leads(t, firing, "57", "https://locks.example/findings?target=main&class=orders&rule=renewal%2Flate")
	leads(t, firing, "server/flushed", "https://locks.example/rules/server/flushed")
	if want := (seenLink{"1", "https://locks.example/findings?target=main&class=&rule=server%2Fflushed"}); !slices.Contains(firing.Links, want) {
		t.Errorf("Firing now has links %v, want %v", firing.Links, want)
	}
	leads(t, fleet.Panels["Locks held longest"], oddKey, "https://locks.example/locks?target=main&q=lock%3Aorder%3A42%2F%C3%A9%26b")
	for title, want := range map[string]string{"Targets": "payments is down search was never swept", "Locks": "1,312", "Oldest full sweep": "search 7.18 mins"} {
		if got := fleet.Panels[title].Text; got != want {
			t.Errorf("%s shows %q, want %q", title, got, want)
		}
	}
	if got := at("trouble", "locksteward-class").Panels["Team"].Text; got != "checkout" {
		t.Errorf("Team shows %q", got)
	}
	if got := at("trouble", "locksteward-agent").Panels["Configuration"].Text; got != "old" {
		t.Errorf("Configuration shows %q", got)
	}
	well := at("well", "locksteward-fleet")
	if got := well.Panels["Firing now"].Text; got != "Nothing fires on the targets that are swept" {
		t.Errorf("with nothing to show Firing now says %q", got)
	}
	if got, want := fmt.Sprint(well.Panels["Locks held longest"].Rows), "[[jobs main 1.02 mins] [orders main 2 s]]"; got != want {
		t.Errorf("without names Locks held longest shows %s, want %s", got, want)
	}
}

func leads(t *testing.T, p seenPanel, text string, parts ...string) {
	t.Helper()
	i := slices.IndexFunc(p.Links, func(l seenLink) bool { return l.Text == text })
	if i < 0 {
		t.Errorf("%q is no link: %v", text, p.Links)
		return
	}
	for _, part := range parts {
		if !strings.Contains(p.Links[i].URL, part) {
			t.Errorf("%q leads to %s, want %s in it", text, p.Links[i].URL, part)
		}
	}
}

// render shows the dashboards in each situation, and returns what is seen.
func render(t *testing.T) []seenBoard {
	t.Helper()
	browser := program(t, "chromium", "chromium-browser", "google-chrome")
	program(t, "npm")
	dir := install(t)
	var raw []json.RawMessage
	for _, file := range boards(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		raw = append(raw, text)
	}
	input, err := json.Marshal(map[string]any{"dashboards": raw, "cases": situations})
	if err != nil {
		t.Fatal(err)
	}
	page := t.TempDir()
	copyFiles(t, page, "web/index.html")
	write(t, filepath.Join(page, "input.js"), append([]byte("const input = "), input...))
	run(t, dir, "node", "build.mjs", filepath.Join(page, "out.js"))
	base := []string{
		"--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=" + filepath.Join(page, "profile"), "--virtual-time-budget=30000", "--window-size=1300,5400",
	}
	address := "file://" + filepath.Join(page, "index.html")
	if *picture != "" {
		run(t, dir, browser, append(base, "--screenshot="+*picture, address)...)
	}
	dom := run(t, dir, browser, append(base, "--dump-dom", address)...)
	_, rest, ok := strings.Cut(dom, `<script id="report" type="application/json">`)
	report, _, _ := strings.Cut(rest, "</script>")
	if !ok {
		_, problem, _ := strings.Cut(dom, `data-error="`)
		problem, _, _ = strings.Cut(problem, `"`)
		t.Fatalf("the page has no report: %s", html.UnescapeString(problem))
	}
	var out []seenBoard
	if err := json.Unmarshal([]byte(report), &out); err != nil {
		t.Fatalf("report: %v", err)
	}
	return out
}

// install returns a folder with the packages and the sources of the page. It is kept for each list of versions.
func install(t *testing.T) string {
	t.Helper()
	list, err := os.ReadFile("web/package.json")
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	sum := sha256.Sum256(list)
	dir := filepath.Join(cache, "locksteward", "grafana-"+hex.EncodeToString(sum[:6]))
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
			t.Fatal(err)
		}
		// Another run may do the same now: it appears as a whole or not at all.
		part, err := os.MkdirTemp(filepath.Dir(dir), "part-")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.RemoveAll(part) }()
		copyFiles(t, part, "web/package.json")
		run(t, part, "npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts")
		if err := os.Rename(part, dir); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}
	copyFiles(t, dir, "web/page.tsx", "web/build.mjs")
	return dir
}

func program(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("none of %v is installed", names)
	}
	t.Skipf("SKIPPED: none of %v is installed", names)
	return ""
}

// run returns the output of a program, which must not fail.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s%s", name, args, err, out, stderr.String())
	}
	return string(out)
}

func copyFiles(t *testing.T, to string, files ...string) {
	t.Helper()
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(to, filepath.Base(file)), raw)
	}
}

func write(t *testing.T, file string, raw []byte) {
	t.Helper()
	if err := os.WriteFile(file, raw, 0o644); err != nil {
		t.Fatal(err)
	}
}
