package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// runInDocs are the pages whose console blocks are run, in their order, each page
// on a server and in a folder of its own.
var runInDocs = []string{"README.md", "README.zh.md", "docs/quickstart.md", "docs/classify.md", "docs/sizing.md"}

// A page's commands do what the page says: each is run by a shell, and each line
// of output on the page is found in the real one, but for figures and ids.
func TestCommandsInPagesRun(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts servers")
	}
	pages := docPages(t)
	for _, page := range runInDocs {
		t.Run(strings.ReplaceAll(page, "/", "_"), func(t *testing.T) {
			t.Parallel()
			p := newPageRun(t)
			ran := 0
			for _, b := range docBlocks(page, pages[page]) {
				switch name := docFile(b); {
				case name != "":
					if err := os.WriteFile(filepath.Join(p.dir, name), []byte(p.here.Replace(b.text)), 0o600); err != nil {
						t.Fatal(err)
					}
				case b.language == "console":
					ran += p.console(t, b)
				}
			}
			if ran == 0 {
				t.Errorf("%s has no console block", page)
			}
		})
	}
}

// docFile is the name of the file that a block is, by its first line: `# NAME`.
func docFile(b docBlock) string {
	if b.language != "yaml" && b.language != "python" {
		return ""
	}
	m := regexp.MustCompile(`^# ([a-z.-]+\.(?:yaml|py))\n`).FindStringSubmatch(b.text)
	if m == nil {
		return ""
	}
	return m[1]
}

// pageRun is the machine of somebody who follows a page.
type pageRun struct {
	dir     string
	bin     string // The first folder of PATH.
	env     []string
	here    *strings.Replacer // Addresses of the page to those that are free here.
	ids     map[string]string // Ids of the page to those of this run.
	last    map[string]string // The latest id of a kind that was printed.
	srv     *testredis.Server
	agent   string // The address of the console of an agent of this folder, and
	metrics string // that of its metrics.
}

func newPageRun(t *testing.T) *pageRun {
	t.Helper()
	srv := testredis.Start(t)
	_, port, err := net.SplitHostPort(srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	hook, metrics, agent := docFreeAddr(t), docFreeAddr(t), docFreeAddr(t)
	_, hookPort, _ := net.SplitHostPort(hook)
	dir := t.TempDir()
	cli, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Skip("no redis-cli")
	}
	bin := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nexec %s -p %s \"$@\"\n", cli, port)
	if err := os.WriteFile(filepath.Join(bin, "redis-cli"), []byte(script), 0o700); err != nil { //nolint:gosec // A program.
		t.Fatal(err)
	}
	script = fmt.Sprintf("#!/bin/sh\nif [ \"$1\" = health ]; then exec \"$LOCKSTEWARD_BIN\" \"$@\" --url http://%s; fi\nexec \"$LOCKSTEWARD_BIN\" \"$@\"\n", metrics)
	if err := os.WriteFile(filepath.Join(bin, "locksteward"), []byte(script), 0o700); err != nil { //nolint:gosec // A program.
		t.Fatal(err)
	}
	self, err := exec.LookPath("locksteward")
	if err != nil {
		t.Fatal(err)
	}
	return &pageRun{
		dir: dir, bin: bin, srv: srv, agent: agent, metrics: metrics,
		env: append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+dir, "NO_COLOR=1", "GORACE=atexit_sleep_ms=0", "LOCKSTEWARD_BIN="+self,
			"LOCKSTEWARD_AGENT=http://"+agent, "LOCKSTEWARD_CONSOLE_LISTEN="+agent, "LOCKSTEWARD_METRICS_LISTEN="+metrics),
		here: strings.NewReplacer("127.0.0.1:6379", srv.Addr(), "127.0.0.1:8099", hook, `"127.0.0.1", 8099`, `"127.0.0.1", `+hookPort,
			"127.0.0.1:10121", metrics, "127.0.0.1:10122", agent),
		ids: map[string]string{}, last: map[string]string{},
	}
}

func docFreeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// console runs the lines of a block, compares what they print, and returns how many
// they were.
func (p *pageRun) console(t *testing.T, b docBlock) int {
	t.Helper()
	all := steps(b)
	for _, step := range all {
		line := p.real(step.line)
		if background, ok := strings.CutSuffix(line, " &"); ok {
			p.start(t, background)
			continue
		}
		p.compare(t, b, line, step.want, p.shell(t, b, line))
	}
	return len(all)
}

// real puts the addresses and ids of this run in the place of those of the page. An
// id that the page shows nowhere else is that of what was made last.
func (p *pageRun) real(line string) string {
	line = p.here.Replace(line)
	return docID.ReplaceAllStringFunc(line, func(id string) string {
		kind, _, _ := strings.Cut(strings.ReplaceAll(id, "_", "-"), "-")
		if p.ids[id] == "" && p.last[kind] != "" {
			p.ids[id] = p.last[kind]
		}
		return cmp.Or(p.ids[id], id)
	})
}

// shell runs a line and returns what it prints; it fails the test if the line does.
func (p *pageRun) shell(t *testing.T, b docBlock, line string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", "set -o pipefail; "+line)
	cmd.Dir, cmd.Env = p.dir, p.env
	out, err := cmd.CombinedOutput()
	if err != nil || redisError.Match(out) {
		t.Fatalf("%s: $ %s\n%v\n%s", b, line, err, out)
	}
	for _, id := range docID.FindAllString(string(out), -1) {
		kind, _, _ := strings.Cut(strings.ReplaceAll(id, "_", "-"), "-")
		p.last[kind] = id
	}
	return string(out)
}

// redisError is how redis-cli prints an error; its exit code is 0 all the same.
var redisError = regexp.MustCompile(`(?m)^(\(error\) )?(ERR|NOAUTH|NOPERM|NOSCRIPT|WRONGTYPE|WRONGPASS|NOGROUP|CROSSSLOT|READONLY) `)

// start runs a line until the test ends, in a group of its own, and returns its
// process.
func (p *pageRun) start(t *testing.T, line string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("bash", "-c", "exec "+line) //nolint:noctx // It ends with the test.
	cmd.Dir, cmd.Env = p.dir, p.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(cmd) })
	return cmd
}

// stop ends a process of start, unless it is over.
func stop(cmd *exec.Cmd) {
	if cmd.ProcessState == nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		_ = cmd.Wait()
	}
}

var (
	docID     = regexp.MustCompile(`\b(r-|sil_)[a-z0-9]{12}\b`)
	docTime   = regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\dZ?`)
	docUUID   = regexp.MustCompile(`\b[0-9a-f]{32,}\b`)
	docFigure = regexp.MustCompile(`[≥+]?\d+(\.\d+)?(ms|µs|s|m|h)\d*\S*`)
	docLooks  = regexp.MustCompile(`\b\d+ looks\b`)
	docAddr   = regexp.MustCompile(`127\.0\.0\.1:\d+`)
)

// alike leaves out of a line what differs from run to run.
func alike(line string) string {
	line = docID.ReplaceAllString(line, "ID")
	line = docTime.ReplaceAllString(line, "TIME")
	line = docUUID.ReplaceAllString(line, "HASH")
	line = docAddr.ReplaceAllString(line, "ADDRESS")
	line = docLooks.ReplaceAllString(line, "N looks")
	line = docFigure.ReplaceAllString(line, "FIGURE")
	words := strings.Fields(line)
	for i, w := range words {
		if i > 0 && w == "-" { // An age that is not known yet, on a machine that is quick.
			words[i] = "FIGURE"
		}
	}
	return strings.Join(words, " ")
}

// compare fails for each line of the page that the output does not have. A line
// `…` stands for what is left out, and one that ends with it for its beginning.
func (p *pageRun) compare(t *testing.T, b docBlock, line, want, out string) {
	t.Helper()
	have := map[string]string{}
	var lines []string
	for l := range strings.SplitSeq(out, "\n") {
		have[alike(l)] = l
		lines = append(lines, alike(l))
	}
	for l := range strings.SplitSeq(want, "\n") {
		got, ok := have[alike(l)]
		if begin, cut := strings.CutSuffix(alike(l), "…"); cut {
			for _, other := range lines {
				ok = ok || strings.HasPrefix(other, strings.TrimSpace(begin))
			}
		}
		if !ok && strings.TrimSpace(l) != "" {
			t.Errorf("%s: $ %s\nthe page has: %s\nthe program said:\n%s", b, line, l, out)
			return
		}
		theirs, ours := docID.FindString(l), docID.FindString(got)
		if theirs != "" && ours != "" {
			p.ids[theirs] = ours
		}
	}
}
