package chaos_test

import (
	"slices"
	"testing"
	"time"
)

// processNemeses break the processes that take locks.
var processNemeses = []nemesis{
	{name: "stopped processes", topology: "single", strays: true, prepare: spawnChildren, strike: stopChildren},
	{name: "killed processes", topology: "single", strays: true, killed: true, prepare: spawnChildren, strike: killChildren},
}

func spawnChildren(b *bed) {
	for range 3 {
		b.spawn(nil)
	}
	b.spawn(func(o *order) { o.Rude = true })
}

func stopChildren(b *bed) {
	for _, d := range []time.Duration{leaseTTL / 4, 2 * leaseTTL} {
		for _, p := range b.children {
			p.stop()
		}
		pause(d)
		for _, p := range b.children {
			p.cont()
		}
		pause(leaseTTL / 4)
	}
}

func killChildren(b *bed) {
	for range 2 {
		old := slices.Clone(b.children)
		b.children = nil
		for _, p := range old {
			pause(time.Duration(b.rng.IntN(30)) * time.Millisecond)
			p.kill()
		}
		spawnChildren(b)
		pause(leaseTTL)
	}
}

// Faults 1 and 2: processes that hold locks, wait for them, or have a request
// under way are stopped, shorter and longer than a lease, and go on.
func TestStoppedProcesses(t *testing.T) { storm(t, named("stopped processes")) }

// Faults 6 and 7: the same are killed.
func TestKilledProcesses(t *testing.T) { storm(t, named("killed processes")) }
