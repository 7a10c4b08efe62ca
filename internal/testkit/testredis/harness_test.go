package testredis_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// stopped is what a fake test panics with in place of ending its goroutine.
type stopped struct{}

// fakeT records how a harness function ends its test.
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

// run calls f until it returns or ends the fake test.
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
	t.Setenv("PATH", t.TempDir())
	start := func(t testing.TB) { testredis.Start(t) }
	if testredis.Available() {
		t.Fatal("a server is available on an empty PATH")
	}

	t.Setenv("CI", "")
	here := &fakeT{TB: t}
	here.run(start)
	if testing.Short() {
		if !strings.Contains(here.skipped, "-short") {
			t.Errorf("with -short: skipped %q", here.skipped)
		}
		return
	}
	if !strings.Contains(here.skipped, "make deps") || here.failed != "" {
		t.Errorf("without CI: skipped %q, failed %q; want a skip that says what to do", here.skipped, here.failed)
	}

	t.Setenv("CI", "true")
	ci := &fakeT{TB: t}
	ci.run(start)
	if !strings.Contains(ci.failed, "make deps") || ci.skipped != "" {
		t.Errorf("with CI: skipped %q, failed %q; want a failure that says what to do", ci.skipped, ci.failed)
	}
}

func TestAvailable(t *testing.T) {
	if os.Getenv("CI") != "" && !testing.Short() && !testredis.Available() {
		t.Error("no redis-server on this machine: run make deps")
	}
}

func TestEventually(t *testing.T) {
	t.Parallel()
	calls := 0
	testredis.Eventually(t, 10*time.Second, func() bool { calls++; return calls == 3 }, "third call")
	if calls != 3 {
		t.Errorf("asked %d times, want 3", calls)
	}

	fake := &fakeT{TB: t}
	fake.run(func(t testing.TB) {
		testredis.Eventually(t, 20*time.Millisecond, func() bool { return false }, "pigs fly")
	})
	if !strings.Contains(fake.failed, "pigs fly") || !strings.Contains(fake.failed, "20ms") {
		t.Errorf("failed with %q, want what was awaited and for how long", fake.failed)
	}
}

func TestImpossibleOptionsAreFatal(t *testing.T) {
	t.Parallel()
	testredis.Start(t) // Skips where no option is possible.
	for name, body := range map[string]func(testing.TB){
		"unknown setting":   func(t testing.TB) { testredis.Start(t, testredis.WithConfig("no-such-setting 1")) },
		"cluster socket":    func(t testing.TB) { testredis.StartCluster(t, testredis.WithSocket()) },
		"sentinel socket":   func(t testing.TB) { testredis.StartSentinel(t, testredis.WithSocket()) },
		"replica of socket": func(t testing.TB) { testredis.StartReplica(t, testredis.Start(t, testredis.WithSocket())) },
	} {
		fake := &fakeT{TB: t}
		fake.run(body)
		if fake.failed == "" {
			t.Errorf("%s: accepted", name)
		}
		if name == "unknown setting" && !strings.Contains(fake.failed, "Bad directive") {
			t.Errorf("%s: failed with %q, want what the server says", name, fake.failed)
		}
	}
}
