package chaos_test

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testredis"
)

// clockNemeses step the clock of the server. libfaketime cannot: it deadlocks
// with the allocator of redis-server, so testdata/clock.c is preloaded instead.
var clockNemeses = []nemesis{
	{name: "clock forward", topology: "clock", damage: drops, strike: clockForward},
	{name: "clock backward", topology: "clock", strike: clockBackward},
	{name: "clock to and fro", topology: "clock", damage: drops, strike: clockStrobe},
}

// clockFile is the step of a server's wall clock, in microseconds: eight bytes
// that it has mapped.
type clockFile struct {
	t    *testing.T
	path string
}

// set makes the server's clock differ by d from now on.
func (c *clockFile) set(d time.Duration) {
	c.t.Helper()
	f, err := os.OpenFile(c.path, os.O_WRONLY, 0)
	if err != nil {
		c.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(d.Microseconds())), 0); err != nil {
		c.t.Fatal(err)
	}
}

// newClocked starts a server whose clock can be set. It changes the environment
// while it does, so its tests are not parallel.
func newClocked(t *testing.T) *bed {
	t.Helper()
	b := newBed(t)
	dir := t.TempDir()
	lib := filepath.Join(dir, "clock.so")
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-O2", "-o", lib, filepath.Join("testdata", "clock.c")).CombinedOutput(); err != nil {
		t.Fatalf("compile the clock (is there a C compiler?): %v\n%s", err, out)
	}
	b.clock = &clockFile{t, filepath.Join(dir, "clock")}
	if err := os.WriteFile(b.clock.path, make([]byte, 8), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LOCKSTEWARD_CLOCK", b.clock.path)
	t.Setenv("LD_PRELOAD", lib)
	srv := testredis.Start(t)
	if err := os.Unsetenv("LD_PRELOAD"); err != nil {
		t.Fatal(err)
	}
	b.serve(srv)
	b.clock.set(time.Hour)
	now, err := srv.Client(t).Time(t.Context()).Result()
	if err != nil || time.Until(now) < 59*time.Minute {
		t.Fatalf("server's clock says %s, %v; want an hour from now", now, err)
	}
	return b
}

// Each strike of one nemesis steps by a day in its direction, so that no two in
// a row undo each other.
func (c *clockFile) step(d time.Duration) {
	c.t.Helper()
	data, err := os.ReadFile(c.path)
	if err != nil {
		c.t.Fatal(err)
	}
	was := time.Duration(int64(binary.NativeEndian.Uint64(data))) * time.Microsecond
	c.set(was + d)
}

func clockForward(b *bed) {
	b.clock.step(time.Second)
	pause(leaseTTL)
	b.clock.step(time.Hour)
	pause(leaseTTL)
}

func clockBackward(b *bed) {
	// By less than b.leftovers waits: leases last longer by the step.
	b.clock.step(-200 * time.Millisecond)
	pause(leaseTTL)
	b.clock.step(-2 * time.Second)
	pause(leaseTTL)
}

func clockStrobe(b *bed) {
	for range 10 {
		d := time.Duration(b.rng.IntN(2000)) * time.Millisecond
		b.clock.step(d)
		pause(30 * time.Millisecond)
		b.clock.step(-d)
		pause(30 * time.Millisecond)
	}
}

// Fault 10: the server's clock jumps forward, and leases end early.
func TestClockForward(t *testing.T) { stormAlone(t, named("clock forward")) }

// Fault 11: the server's clock jumps backward: leases last longer, fences grow
// all the same.
func TestClockBackward(t *testing.T) { stormAlone(t, named("clock backward")) }

// Faults 10 and 11 by turns.
func TestClockStrobe(t *testing.T) { stormAlone(t, named("clock to and fro")) }
