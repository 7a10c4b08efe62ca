package main

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// pageBlocks returns the blocks of a page that contain text, with the addresses of the script in the place of those
// of the page: $R is the Redis server, $METRICS, $CONSOLE and $HOOK are ports.
func pageBlocks(ts *testscript.TestScript, page, text string) []docBlock {
	raw, err := os.ReadFile(filepath.Join("../..", filepath.FromSlash(page)))
	ts.Check(err)
	pairs := []string{"127.0.0.1:6379", strings.TrimPrefix(ts.Getenv("R"), "redis://")}
	for port, name := range map[string]string{"10121": "METRICS", "10122": "CONSOLE", "8099": "HOOK"} {
		if here := ts.Getenv(name); here != "" {
			pairs = append(pairs, "127.0.0.1:"+port, "127.0.0.1:"+here, `"127.0.0.1", `+port, `"127.0.0.1", `+here)
		}
	}
	var out []docBlock
	for _, b := range docBlocks(page, string(raw)) {
		if strings.Contains(b.text, text) {
			b.text = strings.NewReplacer(pairs...).Replace(b.text)
			out = append(out, b)
		}
	}
	if len(out) == 0 {
		ts.Fatalf("%s has no block with %q", page, text)
	}
	return out
}

// blockCmd is `block PAGE TEXT FILE`: the block of the page that contains TEXT becomes the file.
func blockCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: block PAGE TEXT FILE")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(pageBlocks(ts, args[0], args[1])[0].text), 0o600))
}

// pageCmd is `page PAGE TEXT [OLD NEW]...`: it runs the commands of those blocks of the page that contain TEXT, with
// NEW in the place of OLD, and fails if a command does, or does not print a line that a console block shows. Lines of
// programs that tests cannot start, and those that end with &, are left to the script.
func pageCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args)%2 != 0 {
		ts.Fatalf("usage: page PAGE TEXT [OLD NEW]...")
	}
	last := map[string]string{} // by the kind of id, the last that was printed
	ran, state := 0, ""
	for _, b := range pageBlocks(ts, args[0], args[1]) {
		lines := strings.Split(strings.ReplaceAll(b.text, "\\\n", " "), "\n")
		for i, line := range lines {
			if b.language == "console" {
				typed, isPrompt := strings.CutPrefix(line, "$ ")
				if !isPrompt {
					continue
				}
				line = typed
			} else if b.language != "sh" {
				continue
			}
			if !isRun(line) {
				continue
			}
			line = strings.NewReplacer(args[2:]...).Replace(line)
			line = docID.ReplaceAllStringFunc(line, func(id string) string { return cmp.Or(last[id[:2]], id) })
			if setsState.MatchString(line) {
				state += line + "; "
				continue
			}
			ran++
			if err := ts.Exec("timeout", "60", "bash", "-c", "set -o pipefail; "+state+line); err != nil {
				ts.Fatalf("%s: $ %s\n%v", b, line, err)
			}
			printed := ts.ReadFile("stdout") + ts.ReadFile("stderr")
			for _, id := range docID.FindAllString(printed, -1) {
				last[id[:2]] = id
			}
			if b.language == "console" {
				comparePage(ts, b, line, lines[i+1:], printed)
			}
		}
	}
	if ran == 0 {
		ts.Fatalf("%s: no command in a block with %q", args[0], args[1])
	}
}

var (
	docID = regexp.MustCompile(`\b(r-|sil_)[a-z0-9]{12}\b`)
	// setsState is a line that changes the shell for the lines after it.
	setsState = regexp.MustCompile(`^(umask [0-7]+|[A-Z_]+=('[^']*'|\S*))$`)
	// notHere begins a line that tests cannot run, for want of containers, systemd or the sources' module cache.
	notHere = regexp.MustCompile(`^(docker|kubectl|helm|systemctl|make|go) |systemd-(sysusers|tmpfiles) |&$`)
)

// isRun reports whether pageCmd runs a line.
func isRun(line string) bool {
	return line != "" && !strings.HasPrefix(line, "#") && !notHere.MatchString(line)
}

// comparePage fails the script if a line that the page shows, up to the next prompt, was not printed. A line `…`
// stands for some that are left out, and one that ends so for its beginning.
func comparePage(ts *testscript.TestScript, b docBlock, line string, shown []string, printed string) {
	var have []string
	for l := range strings.SplitSeq(printed, "\n") {
		have = append(have, stable(l))
	}
	for _, l := range shown {
		if strings.HasPrefix(l, "$ ") {
			return
		}
		want, isBeginning := strings.CutSuffix(stable(l), "…")
		found := false
		for _, h := range have {
			found = found || h == want || isBeginning && strings.HasPrefix(h, strings.TrimSpace(want))
		}
		if !found {
			ts.Fatalf("%s: $ %s\nthe page shows: %s\nthe program printed:\n%s", b, line, l, printed)
		}
	}
}

// varying is what differs from run to run, and what stands for it.
var varying = []struct {
	pattern *regexp.Regexp
	name    string
}{
	{docID, "ID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\dZ?`), "TIME"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDRESS"},
	{regexp.MustCompile(`\b\d+ looks\b`), "N looks"},
	{regexp.MustCompile(`[≥+]?\d+(\.\d+)?(ms|µs|s|m|h)\d*\S*`), "FIGURE"},
	{regexp.MustCompile(`\B-\B`), "FIGURE"}, // an age that is not known yet
}

// stable returns a line without what differs from run to run.
func stable(line string) string {
	for _, v := range varying {
		line = v.pattern.ReplaceAllString(strings.Join(strings.Fields(line), " "), v.name)
	}
	return line
}
