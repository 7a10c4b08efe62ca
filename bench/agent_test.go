package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// agentProc is the real program with its default settings, as a process of its
// own.
type agentProc struct {
	b       *testing.B
	cmd     *exec.Cmd
	metrics string
	config  string // its file
}

// buildAgent builds the program.
func buildAgent(b *testing.B) string {
	b.Helper()
	binary := filepath.Join(b.TempDir(), "locksteward")
	build := exec.CommandContext(b.Context(), "go", "build", "-o", binary, "./cmd/locksteward")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	return binary
}

// startAgent starts the program for one target, on the core that a pinned server
// has not. Extra lines go under the target.
func startAgent(b *testing.B, binary, url string, extra ...string) *agentProc {
	b.Helper()
	return startAgentOn(b, lastCore(), binary, url, extra...)
}

// startAgentOn starts the program on some cores, as taskset writes them.
func startAgentOn(b *testing.B, cores, binary, url string, extra ...string) *agentProc {
	b.Helper()
	dir := b.TempDir()
	a := &agentProc{b: b, metrics: freeAddr(b)}
	lines := append([]string{"targets:", "  - name: bench", "    url: " + url}, extra...)
	lines = append(lines,
		"classes:",
		"  - {class: orders, match: ['lock:order:*'], expect: 30s}",
		"  - {class: jobs, match: ['job:*:lock']}",
		"store: {dsn: 'sqlite:"+filepath.Join(dir, "l.db")+"'}",
		"metrics: {listen: '"+a.metrics+"'}",
		"console: {listen: '"+freeAddr(b)+"'}",
		"log: {level: error}", "")
	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		b.Fatal(err)
	}
	a.config = config
	a.cmd = exec.Command("taskset", "-c", cores, binary, "run", "--config", config)
	a.cmd.Stdout, a.cmd.Stderr = os.Stderr, os.Stderr
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := a.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	return a
}

// stop ends the program and requires that it ended well.
func (a *agentProc) stop() {
	a.b.Helper()
	if err := a.cmd.Process.Signal(os.Interrupt); err != nil {
		a.b.Fatal(err)
	}
	if err := a.cmd.Wait(); err != nil {
		a.b.Errorf("agent: %v", err)
	}
}

// samples are the metrics by series; nil while the agent does not answer.
func (a *agentProc) samples(ctx context.Context) map[string]float64 {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+a.metrics+"/metrics", nil)
	if err != nil {
		a.b.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	all := map[string]float64{}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		name, value, ok := cutLast(lines.Text(), " ")
		if v, err := strconv.ParseFloat(value, 64); ok && err == nil && !strings.HasPrefix(name, "#") {
			all[name] = v
		}
	}
	return all
}

// sum adds up the series of a metric.
func sum(samples map[string]float64, metric string, labels ...string) float64 {
	total := 0.0
series:
	for name, v := range samples {
		if name != metric && !strings.HasPrefix(name, metric+"{") {
			continue
		}
		for _, l := range labels {
			if !strings.Contains(name, l) {
				continue series
			}
		}
		total += v
	}
	return total
}

// await waits until the metrics are as wanted.
func (a *agentProc) await(within time.Duration, what string, ok func(map[string]float64) bool) map[string]float64 {
	a.b.Helper()
	var last map[string]float64
	testredis.Eventually(a.b, within, func() bool {
		last = a.samples(a.b.Context())
		return last != nil && ok(last)
	}, what)
	return last
}

// settle waits until the start of the program is over: for a second it took less than a
// twentieth of a core, which is several times what it takes in the long run.
func (a *agentProc) settle() {
	a.b.Helper()
	last, at := a.cpu(), time.Now()
	testredis.Eventually(a.b, time.Minute, func() bool {
		now := time.Now()
		if now.Sub(at) < time.Second {
			return false
		}
		used := a.cpu()
		calm := used-last < now.Sub(at)/20
		last, at = used, now
		return calm
	}, "the agent's start is over")
}

// cpu is the processor time that the process took so far, of all its threads.
func (a *agentProc) cpu() time.Duration {
	a.b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", a.cmd.Process.Pid))
	if err != nil {
		a.b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name may hold anything
	fields := strings.Fields(rest)
	var ticks int64 // of a hundredth of a second (proc(5): utime and stime)
	for _, n := range []int{11, 12} {
		v, err := strconv.ParseInt(fields[n], 10, 64)
		if err != nil {
			a.b.Fatal(err)
		}
		ticks += v
	}
	return time.Duration(ticks) * (time.Second / 100)
}

// memory returns what the kernel reports the process's memory now, in MiB: its
// own, and the pages of its file.
func (a *agentProc) memory() (own, file float64) {
	a.b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.cmd.Process.Pid))
	if err != nil {
		a.b.Fatal(err)
	}
	field := func(name string) float64 {
		_, rest, _ := strings.Cut(string(text), name+":")
		var kb float64
		if _, err := fmt.Sscan(rest, &kb); err != nil {
			a.b.Fatalf("%s: %v", name, err)
		}
		return kb / 1024
	}
	return field("RssAnon"), field("RssFile")
}

// scrape returns how long one scrape takes and how much it weighs.
func (a *agentProc) scrape() (took time.Duration, size int64) {
	a.b.Helper()
	began := time.Now()
	resp, err := http.Get("http://" + a.metrics + "/metrics")
	if err != nil {
		a.b.Fatal(err)
	}
	defer resp.Body.Close()
	if size, err = io.Copy(io.Discard, resp.Body); err != nil {
		a.b.Fatal(err)
	}
	return time.Since(began), size
}

func freeAddr(b *testing.B) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
