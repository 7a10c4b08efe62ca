package testpg_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/locksteward/locksteward/internal/testkit/testpg"
)

// stopped is what a fake test panics with in place of ending its goroutine.
type stopped struct{}

// fakeT records how the harness ends its test.
type fakeT struct {
	testing.TB
	skipped, failed string
}

func (f *fakeT) Helper() {}

func (f *fakeT) Skip(args ...any) {
	f.skipped = fmt.Sprint(args...)
	panic(stopped{})
}

func (f *fakeT) Skipf(format string, args ...any) { f.Skip(fmt.Sprintf(format, args...)) }

func (f *fakeT) Fatalf(format string, args ...any) {
	f.failed = fmt.Sprintf(format, args...)
	panic(stopped{})
}

// run calls body until it returns or ends the fake test.
func (f *fakeT) run(body func(testing.TB)) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(stopped); !ok {
				panic(r)
			}
		}
	}()
	body(f)
}

// No parallel: the environment is the whole process's.
func TestMissingServer(t *testing.T) {
	t.Setenv("LOCKSTEWARD_TEST_POSTGRES_BIN", t.TempDir())
	if testpg.Available() {
		t.Fatal("a server is available in an empty directory")
	}
	for name, start := range map[string]func(testing.TB){
		"Start":    func(t testing.TB) { testpg.Start(t) },
		"Database": func(t testing.TB) { testpg.Database(t) },
	} {
		t.Setenv("CI", "")
		here := &fakeT{TB: t}
		here.run(start)
		if testing.Short() {
			if !strings.Contains(here.skipped, "-short") {
				t.Errorf("%s with -short: skipped %q", name, here.skipped)
			}
			continue
		}
		if !strings.Contains(here.skipped, "make deps") || here.failed != "" {
			t.Errorf("%s without CI: skipped %q, failed %q; want a skip that says what to do", name, here.skipped, here.failed)
		}
		t.Setenv("CI", "true")
		ci := &fakeT{TB: t}
		ci.run(start)
		if !strings.Contains(ci.failed, "make deps") || ci.skipped != "" {
			t.Errorf("%s with CI: skipped %q, failed %q; want a failure that says what to do", name, ci.skipped, ci.failed)
		}
	}
}

// A server that does not start fails its test with what the program said.
// No parallel: the environment is the whole process's.
func TestServerThatDoesNotStart(t *testing.T) {
	if testing.Short() {
		t.Skip("runs programs: not run with -short")
	}
	dir := t.TempDir()
	// As root it is another user that runs the programs.
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("LOCKSTEWARD_TEST_POSTGRES_BIN", dir)
	script := func(name, body string) {
		t.Helper()
		if err := os.WriteFile(dir+"/"+name, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script("postgres", "echo out of order >&2; exit 3")
	for body, want := range map[string]string{
		"exit 0":                       "out of order",
		"echo no locale there; exit 1": "no locale there",
	} {
		script("initdb", body)
		fake := &fakeT{TB: t}
		fake.run(func(t testing.TB) { testpg.Start(t) })
		if !strings.Contains(fake.failed, want) {
			t.Errorf("failed with %q, want %q in it", fake.failed, want)
		}
	}
}
