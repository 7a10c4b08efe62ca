package testredis

import (
	_ "embed" // for the source of the clock
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// clockSource is preloaded into the server. libfaketime would do the same, but
// deadlocks with the allocator of redis-server.
//
//go:embed testdata/clock.c
var clockSource []byte

// Words of the file that the server has mapped.
const (
	clockOffset = 0
	clockFrozen = 8
	clockSize   = 16
)

// Clock is the wall clock of one server, set by the test: expiries, TIME and
// uptime follow it. What the server measures by its monotonic clock (timers, slow
// scripts) does not, and OBJECT IDLETIME follows within one tick of hz. It belongs
// to the goroutine of the test.
type Clock struct {
	t      testing.TB
	file   *os.File
	offset time.Duration
}

// StartClocked starts a redis-server whose clock can be set. It needs a C
// compiler. Valkey 9.1 goes on from the processor's ticks between two looks at the
// clock, and so follows a step late: there the test is skipped.
func StartClocked(t testing.TB, opts ...Option) (*Server, *Clock) {
	t.Helper()
	need(t)
	if v := Version(t); v.Valkey && (v.Major > 9 || v.Major == 9 && v.Minor >= 1) {
		t.Skipf("%s: its clock cannot be set to the moment", v)
	}
	dir := t.TempDir()
	source, lib := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so")
	if err := os.WriteFile(source, clockSource, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-O2", "-o", lib, source).CombinedOutput(); err != nil {
		t.Fatalf("compile the clock (is there a C compiler?): %v\n%s", err, out)
	}
	file, err := os.OpenFile(filepath.Join(dir, "clock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := file.Close(); err != nil {
			t.Errorf("close clock: %v", err)
		}
	})
	if err := file.Truncate(clockSize); err != nil {
		t.Fatal(err)
	}
	c := &Clock{t: t, file: file}
	srv := start(t, collect(append(opts, withEnv("LOCKSTEWARD_CLOCK="+file.Name(), "LD_PRELOAD="+lib))))
	c.prove(srv)
	return srv, c
}

// prove fails the test if the server does not go by the clock: all that is tested
// with it would show nothing.
func (c *Clock) prove(srv *Server) {
	c.t.Helper()
	c.Set(time.Hour)
	now, err := srv.Client(c.t).Time(c.t.Context()).Result()
	if err != nil || time.Until(now) < 59*time.Minute {
		c.t.Fatalf("server's clock says %s, %v; want an hour from now", now, err)
	}
	c.Set(0)
}

// Set makes the clock run, and differ from the true one by d from now on.
func (c *Clock) Set(d time.Duration) {
	c.t.Helper()
	c.offset = d
	c.write(clockOffset, d.Microseconds())
	c.write(clockFrozen, 0)
}

// Step moves the clock by d, back if d is negative.
func (c *Clock) Step(d time.Duration) {
	c.t.Helper()
	c.Set(c.offset + d)
}

// Freeze makes the clock stand still at a time, to the microsecond, until it is
// frozen at another one or set.
func (c *Clock) Freeze(at time.Time) {
	c.t.Helper()
	c.write(clockFrozen, at.UnixMicro())
}

func (c *Clock) write(word, us int64) {
	c.t.Helper()
	if _, err := c.file.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(us)), word); err != nil {
		c.t.Fatalf("set the server's clock: %v", err)
	}
}
