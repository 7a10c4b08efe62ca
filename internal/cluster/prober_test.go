package cluster

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/store"
)

// proberWorld is a prober in a bubble, where time passes by itself.
type proberWorld struct {
	*prober
	probes, changes atomic.Int64
	reason          atomic.Value // string
}

func newProberWorld() *proberWorld {
	p := &proberWorld{}
	p.reason.Store("")
	p.prober = newProber(zap.NewNop(), Hooks{
		Ping: func(context.Context, string) error { return errors.New("not connected") },
		Dial: func(context.Context, string) error {
			p.probes.Add(1)
			if reason := p.reason.Load().(string); reason != "" {
				return errors.New(reason)
			}
			return nil
		},
	}, func() { p.changes.Add(1) })
	return p
}

// hears is a heartbeat of a replica "me" that works on targets, with what others report.
func (p *proberWorld) hears(t *testing.T, works []string, others ...store.Replica) {
	own := map[string]bool{}
	for _, name := range works {
		own[name] = true
	}
	duties := []Duty{{Name: store.SingletonDuties}, {Name: "a"}, {Name: "b"}, {Name: "c", With: "b"}}
	p.update(t.Context(), "me", own, duties, store.Membership{Replicas: append([]store.Replica{{ID: "me"}}, others...)})
	synctest.Wait()
}

// in lets time pass, and returns the number of probes meanwhile.
func (p *proberWorld) in(d time.Duration) int64 {
	before := p.probes.Load()
	time.Sleep(d)
	synctest.Wait()
	return p.probes.Load() - before
}

func (p *proberWorld) expect(t *testing.T, when string, unreachable, reachable []string) {
	t.Helper()
	gotUnreachable, gotReachable := p.report()
	if !slices.Equal(gotUnreachable, unreachable) || !slices.Equal(gotReachable, reachable) {
		t.Errorf("%s: unreachable %v, reachable %v; want %v, %v", when, gotUnreachable, gotReachable, unreachable, reachable)
	}
}

func TestOwnerProbesItsTargets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, other := newProberWorld(), store.Replica{ID: "other"}
		p.hears(t, []string{"a", "b", "c"})
		if n := p.in(10 * time.Second); n != 0 {
			t.Errorf("alone it probed %d times", n)
		}
		p.hears(t, []string{"a", "b", "c"}, other) // b and c stay together
		if n := p.in(10 * time.Second); n < 9 || n > 10 {
			t.Errorf("%d probes in 10 s", n)
		}
		p.expect(t, "in reach", nil, nil)
		p.reason.Store("refused")
		p.in(2 * time.Second)
		p.expect(t, "out of reach", []string{"a"}, nil)
		if p.changes.Load() == 0 {
			t.Error("the others are not reported at once")
		}
		if _, confirmed := p.confirmed("a"); confirmed {
			t.Error("confirmed before another one reaches it")
		}
		// Another one reaches it: it is probed once more, at once.
		other.Reachable = []string{"a"}
		before := p.probes.Load()
		p.hears(t, []string{"a"}, other)
		if reason, confirmed := p.confirmed("a"); !confirmed || reason != "refused" || p.probes.Load() != before+1 {
			t.Errorf("another one reaches it: confirmed %t, %q, %d probes", confirmed, reason, p.probes.Load()-before)
		}
		// It does not own it any more, and probes it until it reaches it.
		p.hears(t, nil, other)
		if n := p.in(10 * time.Second); n == 0 {
			t.Error("it does not probe any more")
		}
		p.reason.Store("")
		p.in(time.Minute)
		p.expect(t, "in reach again", nil, nil)
		p.hears(t, nil, other)
		if n := p.in(10 * time.Second); n != 0 {
			t.Errorf("%d probes of what it reaches and does not work on", n)
		}
		p.close()
		p.work.Wait()
	})
}

func TestOthersProbeWhatOneCannotReach(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, other := newProberWorld(), store.Replica{ID: "other"}
		p.hears(t, nil, other)
		if n := p.in(10 * time.Second); n != 0 {
			t.Errorf("%d probes of what another one works on", n)
		}
		other.Unreachable = []string{"a", "b"}
		p.hears(t, nil, other)
		p.expect(t, "asked", nil, []string{"a"})
		if p.changes.Load() != 1 {
			t.Errorf("the other one is notified %d times at once", p.changes.Load())
		}
		p.hears(t, []string{"a"}, other) // it is given it
		p.expect(t, "working on it", nil, []string{"a"})
		// Both do not reach it.
		p.reason.Store("refused")
		p.in(3 * time.Second)
		p.expect(t, "out of reach too", []string{"a"}, nil)
		p.hears(t, nil, store.Replica{ID: "other"})
		if n := p.in(10 * time.Second); n == 0 {
			t.Error("it forgot that it does not reach it")
		}
		p.hears(t, nil, other)
		p.close()
		if n := p.in(10 * time.Second); n != 0 {
			t.Errorf("%d probes after the end", n)
		}
		p.hears(t, nil, other)
		if n := p.in(10 * time.Second); n != 0 {
			t.Errorf("%d probes started after the end", n)
		}
		p.work.Wait()
	})
}
