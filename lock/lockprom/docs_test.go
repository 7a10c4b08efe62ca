package lockprom

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const page = "../../docs/client-metrics.md"

func readPage(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// part is a generated part of the page.
func part(t *testing.T, text, name, body string) string {
	t.Helper()
	begin := "<!-- " + name + ": written by go test ./lock/lockprom -run TestDocumentation -update -->\n"
	end := "<!-- end of " + name + " -->\n"
	before, rest, ok := strings.Cut(text, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no part between %q and %q", page, begin, end)
	}
	return before + begin + body + end + after
}

func TestDocumentation(t *testing.T) {
	t.Parallel()
	var metrics, reasons strings.Builder
	metrics.WriteString("| metric | labels | meaning |\n| --- | --- | --- |\n")
	for _, m := range Metrics() {
		labels := ""
		if len(m.Labels) > 0 {
			labels = "`" + strings.Join(m.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&metrics, "| `%s` | %s | %s |\n", m.Name, labels, m.Help)
	}
	reasons.WriteString("| reason | means |\n| --- | --- |\n")
	for _, r := range reasonNames {
		fmt.Fprintf(&reasons, "| `%s` | %s |\n", r.name, r.help)
	}
	text := readPage(t)
	wanted := part(t, part(t, text, "metrics", metrics.String()), "reasons", reasons.String())
	if *update {
		if err := os.WriteFile(page, []byte(wanted), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if text != wanted {
		t.Errorf("%s is not what the tables say; run: go test ./lock/lockprom -run TestDocumentation -update", page)
	}
	for _, name := range regexp.MustCompile(`\blocksteward_client_[a-z0-9_]*[a-z0-9]\b`).FindAllString(text, -1) {
		known := false
		for _, m := range Metrics() {
			known = known || name == m.Name || m.Type == histogram &&
				(name == m.Name+"_bucket" || name == m.Name+"_count" || name == m.Name+"_sum")
		}
		if !known {
			t.Errorf("%s names the metric %s, which does not exist", page, name)
		}
	}
	for _, values := range [][]string{resultNames[:], outcomeNames[:], cleanupNames[:], lossNames[:]} {
		for _, v := range values {
			if !strings.Contains(text, "`"+v+"`") {
				t.Errorf("%s does not name the label value %s", page, v)
			}
		}
	}
}

// queries returns the PromQL of the page: its expressions stand apart by an
// empty line or by a comment, and one that continues is indented.
func queries(t *testing.T) []string {
	t.Helper()
	var list []string
	for _, block := range strings.Split(readPage(t), "```promql\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		for line := range strings.Lines(block) {
			switch {
			case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
			case strings.HasPrefix(line, " "):
				list[len(list)-1] += line
			default:
				list = append(list, line)
			}
		}
	}
	if len(list) == 0 {
		t.Fatalf("no query found in %s", page)
	}
	return list
}

// TestQueries evaluates the queries of the page over the counts of an
// application, those over classic buckets and counters by their results.
func TestQueries(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("promtool is not installed, and CI is set")
		}
		t.Skip("SKIPPED: promtool is not installed")
	}
	var rules strings.Builder
	rules.WriteString("groups:\n- name: page\n  rules:\n")
	list := queries(t)
	for i, q := range list {
		fmt.Fprintf(&rules, "  - record: q%d\n    expr: %q\n", i, q)
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	run := func(args ...string) {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
	run("check", "rules", write("page.yaml", rules.String()))

	// Each minute: 10 calls, of which 2 found it held, 1 lost its reply; 3 looked
	// at a holder first. 100 renewals, 25 failures. 4 holds, 3 of them within 30 s.
	var tests strings.Builder
	tests.WriteString("rule_files: [page.yaml]\nevaluation_interval: 1m\ntests:\n- interval: 1m\n  input_series:\n")
	for series, each := range map[string]int{
		`acquire_attempts_total{class="orders"}`:                           10,
		`acquire_failures_total{class="orders",reason="held"}`:             2,
		`acquire_failures_total{class="orders",reason="unknown"}`:          1,
		`acquire_failures_total{class="orders",reason="oom"}`:              0,
		`acquire_contended_total{class="orders"}`:                          3,
		`acquire_attempts_total{class="idle"}`:                             0,
		`acquire_failures_total{class="idle",reason="held"}`:               0,
		`renewals_total{class="orders"}`:                                   75,
		`renewals_late_total{class="orders"}`:                              15,
		`renewal_failures_total{class="orders",reason="unknown"}`:          25,
		`wait_seconds_bucket{class="orders",result="acquired",le="0.001"}`: 0,
		`wait_seconds_bucket{class="orders",result="acquired",le="0.003"}`: 7,
		`wait_seconds_bucket{class="orders",result="acquired",le="+Inf"}`:  7,
		`hold_seconds_bucket{class="orders",outcome="released",le="30"}`:   3,
		`hold_seconds_count{class="orders",outcome="released"}`:            4,
		`locks_lost_total{class="orders",reason="gone"}`:                   1,
		`locks_lost_total{class="orders",reason="closed"}`:                 1,
		`cleanups_total{class="orders",outcome="failed"}`:                  0,
	} {
		fmt.Fprintf(&tests, "  - series: %q\n    values: 0+%dx120\n", "locksteward_client_"+series, each)
	}
	tests.WriteString("  promql_expr_test:\n")
	expect := func(query, labels string, hundredThousandths int) {
		for i, q := range list {
			if strings.Contains(q, query) {
				fmt.Fprintf(&tests, "  - expr: round(q%d * 100000)\n    eval_time: 2h\n    exp_samples: [{labels: %q, value: %d}]\n", i, labels, hundredThousandths)
				return
			}
		}
		t.Errorf("no query has %q", query)
	}
	expect("acquire_failures_total[5m]", `{class="orders"}`, 30_000)
	expect(`acquire_failures_total{reason!~"held|canceled"}`, `{class="orders"}`, 10_000)
	expect("acquire_contended_total", `{class="orders"}`, 30_000)
	expect("wait_seconds_bucket", `{class="orders"}`, 298)
	expect("hold_seconds_bucket", `{}`, 25_000)
	expect("renewal_failures_total", `{class="orders"}`, 25_000)
	expect("renewals_late_total", `{class="orders"}`, 20_000)
	expect("locks_lost_total", `{class="orders", reason="gone"}`, 6_000_000)
	run("test", "rules", write("test.yaml", tests.String()))
}
