package chaos_test

import (
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// clockNemeses step the clock of the server.
var clockNemeses = []nemesis{
	{name: "clock forward", topology: "clock", damage: drops, strike: clockForward},
	{name: "clock backward", topology: "clock", strike: clockBackward},
	{name: "clock to and fro", topology: "clock", damage: drops, strike: clockStrobe},
}

// newClocked starts a server whose clock can be set.
func newClocked(t *testing.T) *bed {
	t.Helper()
	b := newBed(t)
	srv, clock := testredis.StartClocked(t)
	b.clock = clock
	b.serve(srv)
	b.clock.Set(time.Hour)
	return b
}

// Each strike of one nemesis steps by a day in its direction, so that no two in
// a row undo each other.

func clockForward(b *bed) {
	b.clock.Step(time.Second)
	pause(leaseTTL)
	b.clock.Step(time.Hour)
	pause(leaseTTL)
}

func clockBackward(b *bed) {
	// By less than b.leftovers waits: leases last longer by the step.
	b.clock.Step(-200 * time.Millisecond)
	pause(leaseTTL)
	b.clock.Step(-2 * time.Second)
	pause(leaseTTL)
}

func clockStrobe(b *bed) {
	for range 10 {
		d := time.Duration(b.rng.IntN(2000)) * time.Millisecond
		b.clock.Step(d)
		pause(30 * time.Millisecond)
		b.clock.Step(-d)
		pause(30 * time.Millisecond)
	}
}

// Fault 10: the server's clock jumps forward, and leases end early.
// fault: 10
func TestClockForward(t *testing.T) {
	stormAlone(t, named("clock forward"))
}

// Fault 11: the server's clock jumps backward: leases last longer, fences grow
// all the same.
// fault: 11
func TestClockBackward(t *testing.T) {
	stormAlone(t, named("clock backward"))
}

// Faults 10 and 11 by turns.
// fault: 10, 11
func TestClockStrobe(t *testing.T) {
	stormAlone(t, named("clock to and fro"))
}
