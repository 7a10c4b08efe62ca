package deploytest

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write what the chart renders and the copies of grafana/ anew")

var prebuilt = flag.String("binary", "", "a static build of the program, in place of one made here")

// root is the repository.
const root = "../.."

// must returns the file's content.
func must(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// same compares a file with what it should be, or with -update makes it so.
func same(t *testing.T, path string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what it should be (%v): run `make deploy-golden` and look at what changed", path, err)
	}
}

// lookPath finds a tool, or skips the test; with CI set it must be there.
func lookPath(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") == "true" && name != "systemd-analyze" {
			t.Fatalf("no %s on this machine: run scripts/deps.sh", name)
		}
		t.Skipf("SKIPPED: no %s on this machine", name)
	}
	return path
}

// static is the program as images and archives have it, built once. It lies where
// every user may run it.
var static = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "locksteward-static-")
	if err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	staticDir = dir
	out := filepath.Join(dir, "locksteward")
	if *prebuilt != "" {
		raw, err := os.ReadFile(*prebuilt)
		if err != nil {
			return "", err
		}
		return out, os.WriteFile(out, raw, 0o755)
	}
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", out, "./cmd/locksteward")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build locksteward: %w\n%s", err, said)
	}
	return out, nil
})

var staticDir string

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if staticDir != "" {
		if err := os.RemoveAll(staticDir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// binary is the static program.
func binary(t *testing.T) string {
	t.Helper()
	path, err := static()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// locksteward runs the program to its end and returns what it said.
func locksteward(t *testing.T, env []string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary(t), args...)
	cmd.Env = append(os.Environ(), env...)
	said, err := cmd.CombinedOutput()
	return string(said), err
}

// checkConfig puts a configuration into dir and has the program check it.
// Paths below /run/secrets and /run/locksteward are moved into dir, where files must
// lie already.
func checkConfig(t *testing.T, dir, content string, env ...string) {
	t.Helper()
	file := filepath.Join(dir, "locksteward.yaml")
	if err := os.WriteFile(file, []byte(moved(dir, content)), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := locksteward(t, env, "config", "check", file); err != nil {
		t.Errorf("config check: %v\n%s\n%s", err, said, content)
	}
}

// moved rewrites the places of a container into those of a folder.
func moved(dir, content string) string {
	for _, place := range []string{"/run/secrets", "/run/locksteward", "/var/lib/locksteward"} {
		content = strings.ReplaceAll(content, place, filepath.Join(dir, filepath.FromSlash(place)))
	}
	return content
}

// put writes a file below dir and returns its path.
func put(t *testing.T, dir, path, content string) string {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o640); err != nil {
		t.Fatal(err)
	}
	return file
}

// command runs a tool to its end and returns what it said.
func command(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	said, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	return string(said), err
}
