package replicas

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/store"
)

// post is a lookout in a bubble, where time passes by itself.
type post struct {
	*lookout
	tries, changes atomic.Int64
	why            atomic.Value // string
}

func newPost() *post {
	p := &post{}
	p.why.Store("")
	p.lookout = newLookout(zap.NewNop(), func() { p.changes.Add(1) })
	p.try = func(context.Context, string) string { p.tries.Add(1); return p.why.Load().(string) }
	return p
}

// hears is a beat of a replica "me" that works on targets, with what another one says.
func (p *post) hears(t *testing.T, works []string, others ...store.Replica) {
	held := map[string]bool{}
	for _, name := range works {
		held[name] = true
	}
	duties := []Duty{{Name: store.House}, {Name: "a"}, {Name: "b"}, {Name: "c", With: "b"}}
	p.follow(t.Context(), "me", held, duties, store.Roll{Replicas: append([]store.Replica{{ID: "me"}}, others...)})
	synctest.Wait()
}

// in lets time pass, and returns how often was looked meanwhile.
func (p *post) in(d time.Duration) int64 {
	before := p.tries.Load()
	time.Sleep(d)
	synctest.Wait()
	return p.tries.Load() - before
}

func (p *post) expect(t *testing.T, when string, blind, sees []string) {
	t.Helper()
	gotBlind, gotSees := p.says()
	if !slices.Equal(gotBlind, blind) || !slices.Equal(gotSees, sees) {
		t.Errorf("%s: blind %v, sees %v; want %v, %v", when, gotBlind, gotSees, blind, sees)
	}
}

func TestWhoWorksOnATargetLooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, other := newPost(), store.Replica{ID: "other"}
		p.hears(t, []string{"a", "b", "c"})
		if n := p.in(10 * time.Second); n != 0 {
			t.Errorf("alone it looked %d times", n)
		}
		p.hears(t, []string{"a", "b", "c"}, other) // b and c stay together
		if n := p.in(10 * time.Second); n < 9 || n > 10 {
			t.Errorf("%d looks in 10 s", n)
		}
		p.expect(t, "in reach", nil, nil)
		p.why.Store("refused")
		p.in(2 * time.Second)
		p.expect(t, "out of reach", []string{"a"}, nil)
		if p.changes.Load() == 0 {
			t.Error("the others are not told at once")
		}
		if _, sure := p.sure("a"); sure {
			t.Error("sure before another one sees it")
		}
		// Another one reaches it: it is tried once more, at once.
		other.Sees = []string{"a"}
		before := p.tries.Load()
		p.hears(t, []string{"a"}, other)
		if why, sure := p.sure("a"); !sure || why != "refused" || p.tries.Load() != before+1 {
			t.Errorf("it was heard that another one reaches it: sure %t, %q, %d looks", sure, why, p.tries.Load()-before)
		}
		// It has it no longer, and looks on until it reaches it.
		p.hears(t, nil, other)
		if n := p.in(10 * time.Second); n == 0 {
			t.Error("it does not look any more")
		}
		p.why.Store("")
		p.in(time.Minute)
		p.expect(t, "in reach again", nil, nil)
		p.hears(t, nil, other)
		if n := p.in(10 * time.Second); n != 0 {
			t.Errorf("%d looks at what it reaches and does not work on", n)
		}
		p.close()
		p.work.Wait()
	})
}

func TestOthersLookWhileOneIsBlind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, other := newPost(), store.Replica{ID: "other"}
		p.hears(t, nil, other)
		if n := p.in(10 * time.Second); n != 0 {
			t.Errorf("%d looks at what another one works on", n)
		}
		other.Blind = []string{"a", "b"}
		p.hears(t, nil, other)
		p.expect(t, "asked", nil, []string{"a"})
		if p.changes.Load() != 1 {
			t.Errorf("the other one is told %d times at once", p.changes.Load())
		}
		p.hears(t, []string{"a"}, other) // it is given it
		p.expect(t, "working on it", nil, []string{"a"})
		// Both do not reach it.
		p.why.Store("refused")
		p.in(3 * time.Second)
		p.expect(t, "out of reach too", []string{"a"}, nil)
		p.hears(t, nil, store.Replica{ID: "other"})
		if n := p.in(10 * time.Second); n == 0 {
			t.Error("it forgot that it does not reach it")
		}
		p.hears(t, nil, other)
		p.close()
		if n := p.in(10 * time.Second); n != 0 {
			t.Errorf("%d looks after the end", n)
		}
		p.hears(t, nil, other)
		if n := p.in(10 * time.Second); n != 0 {
			t.Errorf("%d looks began after the end", n)
		}
		p.work.Wait()
	})
}
