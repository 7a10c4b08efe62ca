package live_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// installed is the folder with the packages of node/package.json, found or
// installed once.
var installed = sync.OnceValues(install)

// install puts the packages into the user's cache, in a folder of its own for
// each list of versions.
func install() (modules string, err error) {
	list, err := os.ReadFile(filepath.Join("node", "package.json"))
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	sum := sha256.Sum256(list)
	dir := filepath.Join(cache, "locksteward", "live-"+hex.EncodeToString(sum[:6]))
	modules = filepath.Join(dir, "node_modules")
	if _, err := os.Stat(modules); err == nil {
		return modules, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	// Somebody else may do the same now: it appears as a whole or not at all.
	part, err := os.MkdirTemp(filepath.Dir(dir), "part-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(part) }()
	if err := os.WriteFile(filepath.Join(part, "package.json"), list, 0o644); err != nil {
		return "", err
	}
	cmd := exec.Command("npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts")
	cmd.Dir = part
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm install: %w\n%s", err, out)
	}
	if err := os.Rename(part, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		if _, there := os.Stat(modules); there != nil {
			return "", err
		}
	}
	return modules, nil
}

// worker is one process of Node.js that uses a library.
type worker struct {
	t     *testing.T
	in    io.WriteCloser
	lines <-chan string
	kill  func()
}

// node starts one of the programs in node/. Without Node.js the test is
// skipped; continuous integration must have it.
func node(t *testing.T, program string, args ...string) *worker {
	t.Helper()
	if testing.Short() {
		t.Skip("needs Node.js and its packages: not run with -short")
	}
	modules, err := installed()
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skipf("SKIPPED, NOTHING TESTED: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), "node", append([]string{filepath.Join("node", program)}, args...)...)
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	must(t, cmd.Start())
	lines, read := make(chan string, 16), make(chan struct{})
	go func() {
		defer close(read)
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			select {
			case lines <- s.Text():
			case <-t.Context().Done():
				return
			}
		}
	}()
	w := &worker{t: t, in: in, lines: lines}
	killed := false
	w.kill = func() {
		killed = true
		must(t, cmd.Process.Kill())
		<-read
	}
	t.Cleanup(func() {
		_ = in.Close() // it ends with its input
		<-read
		if err := cmd.Wait(); err != nil && !killed && t.Context().Err() == nil {
			t.Errorf("%s %v: %v", program, args, err)
		}
		if t.Failed() {
			t.Log(complaints.String())
		}
	})
	return w
}

func (w *worker) says(want string) {
	w.t.Helper()
	select {
	case got, open := <-w.lines:
		if !open || got != want {
			w.t.Fatalf("the worker says %q, want %q", got, want)
		}
	case <-time.After(patience):
		w.t.Fatalf("the worker is silent, want %q", want)
	}
}

func (w *worker) tell(what string) {
	w.t.Helper()
	_, err := io.WriteString(w.in, what+"\n")
	must(w.t, err)
}

// port is the server's, for programs that take no address.
func (l lab) port() string {
	return l.server.Addr()[strings.LastIndex(l.server.Addr(), ":")+1:]
}
