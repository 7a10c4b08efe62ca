package scanner

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// spin does work for d and books it with the factors given.
func spin(t *testing.T, b *budget, d time.Duration, latency, memory float64) {
	t.Helper()
	if err := b.wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(d) // the bubble's clock
	b.spend(work{took: d, latency: latency, memory: memory})
}

func TestBudgetHoldsTheShare(t *testing.T) {
	t.Parallel()
	for _, share := range []float64{0.01, 0.02, 0.5} {
		synctest.Test(t, func(t *testing.T) {
			b := newBudget(share)
			began := time.Now()
			const calls, each = 200, 300 * time.Microsecond
			for range calls {
				spin(t, b, each, 1, 1)
			}
			if err := b.wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := float64(calls*each) / float64(time.Since(began))
			if got > share*1.0001 || got < share*0.99 {
				t.Errorf("share %g, want %g", got, share)
			}
			if waited := b.throttled()[ReasonShare]; waited != time.Since(began)-calls*each {
				t.Errorf("waited %s for the share, want %s", waited, time.Since(began)-calls*each)
			}
		})
	}
}

func TestBudgetIsOneForAllMasters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(0.02)
		began := time.Now()
		const calls, each = 100, time.Millisecond
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for range calls {
					spin(t, b, each, 1, 1)
				}
			})
		}
		wg.Wait()
		if err := b.wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		// Three calls may be under way at once, so the last rounds overlap a
		// little.
		if got := 3 * calls * float64(each) / float64(time.Since(began)); got > 0.0205 {
			t.Errorf("three masters together took a share of %g", got)
		}
	})
}

func TestBudgetNamesItsReasons(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(0.1)
		spin(t, b, time.Millisecond, 0.5, 0.25) // 9 ms, 10 more, 60 more
		spin(t, b, 0, 1, 1)
		if err := b.pause(t.Context(), ReasonBusy, time.Second); err != nil {
			t.Fatal(err)
		}
		want := map[Reason]time.Duration{
			ReasonShare: 9 * time.Millisecond, ReasonLatency: 10 * time.Millisecond, ReasonMemory: 60 * time.Millisecond,
			ReasonBusy: time.Second, ReasonLoading: 0, ReasonPaused: 0,
		}
		got := b.throttled()
		for _, reason := range Reasons() {
			if d := got[reason] - want[reason]; d < -time.Microsecond || d > time.Microsecond {
				t.Errorf("%s: %s, want %s", reason, got[reason], want[reason])
			}
		}
	})
}

func TestBudgetWithoutLimitNeverWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(1)
		began := time.Now()
		for range 1000 {
			b.spend(work{took: time.Second, latency: 1, memory: 1})
			if err := b.wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if time.Since(began) != 0 {
			t.Errorf("waited %s", time.Since(began))
		}
	})
}

func TestBudgetEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(0.01)
		b.spend(work{took: time.Hour, latency: 1, memory: 1})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if err := b.wait(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("waited %s: %v", time.Since(began), err)
		}
	})
}

func TestPacerKeepsCallsShort(t *testing.T) {
	t.Parallel()
	for name, perKey := range map[string]time.Duration{"fast": 300 * time.Nanosecond, "usual": 600 * time.Nanosecond, "slow": 5 * time.Microsecond, "very slow": 100 * time.Microsecond} {
		p := newPacer()
		const net = 2 * time.Millisecond // a server far away is not a slow server
		p.probed(time.Now(), net)
		if p.count != 100 {
			t.Fatalf("first COUNT %d, want 100", p.count)
		}
		var took time.Duration
		for range 50 {
			count := p.count
			took = time.Duration(count) * perKey
			p.scanned(count, net+took)
		}
		if limit := 5 * callTarget / 3; took > limit && p.count > minCount {
			t.Errorf("%s: COUNT %d keeps the server for %s, want at most %s", name, p.count, took, limit)
		}
		if p.count > maxCount || p.count < minCount {
			t.Errorf("%s: COUNT %d", name, p.count)
		}
		if least := int((callTarget - callCost) / keyCost); perKey < time.Microsecond && p.count < least {
			t.Errorf("%s: COUNT %d is smaller than it need be", name, p.count)
		}
	}
}

// On a busy server a call mostly waits for other clients', which must not be taken
// for its size: pages of ten keys would only be more calls, for the server and for us.
func TestPacerSeesPastQueues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		perKey     time.Duration
		least, max int
	}{
		"usual": {600 * time.Nanosecond, 50, 100},
		"slow":  {5 * time.Microsecond, minCount, 30},
	} {
		p := newPacer()
		rng := rand.New(rand.NewPCG(1, 2))
		// 0.2 ms of network, and a wait of 0.8 ms on average.
		wait := func() time.Duration {
			return 200*time.Microsecond + time.Duration(rng.ExpFloat64()*float64(800*time.Microsecond))
		}
		now := time.Now()
		var counts []int
		for i := range 400 {
			now = now.Add(probeEvery)
			p.probed(now, wait())
			count := p.count
			p.scanned(count, wait()+time.Duration(count)*c.perKey)
			if i >= 50 {
				counts = append(counts, count)
			}
		}
		slices.Sort(counts)
		if median := counts[len(counts)/2]; median < c.least || median > c.max {
			t.Errorf("%s: COUNT %d in the median behind a queue, want %d to %d", name, median, c.least, c.max)
		}
		if high := counts[len(counts)*9/10]; high > 3*c.max {
			t.Errorf("%s: one COUNT of ten is above %d, want at most %d", name, high, 3*c.max)
		}
	}
}

// One call that took far longer than anything lately is answered at once, and
// forgotten when the next ones do not.
func TestPacerMindsOneLongCall(t *testing.T) {
	t.Parallel()
	p := newPacer()
	p.probed(time.Now(), 100*time.Microsecond)
	usual := func(n int) {
		for range n {
			p.scanned(p.count, 150*time.Microsecond+time.Duration(p.count)*keyCost)
		}
	}
	usual(2 * scanRecent)
	before := p.count
	p.scanned(p.count, 5*time.Millisecond)
	if p.count > before/2 {
		t.Errorf("COUNT %d after a call of 5 ms at %d", p.count, before)
	}
	usual(2)
	if p.count != before {
		t.Errorf("COUNT %d two calls later, want %d again", p.count, before)
	}
}

// A server whose one thread has little time left gives us that of others. What we had
// of it ourselves does not count.
func TestPacerLeavesAFullServerAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		main float64       // busy seconds a second; negative: not told
		ours time.Duration // of them
		want float64
	}{{"full", 0.97, 0, minFactor}, {"busy", 0.8, 0, minFactor}, {"half busy", 0.7, 0, 1}, {"ours", 0.97, 300 * time.Millisecond, 1}, {"not told", -1, 0, 1}} {
		p := newPacer()
		now, main := time.Unix(1000, 0), 50.0
		for range 8 {
			if c.main < 0 {
				main = -1
			} else {
				main += c.main
			}
			p.meter.read(now, 100+main, main)
			p.meter.estimate(c.ours)
			now = now.Add(meterEvery)
			p.probed(now, 200*time.Microsecond)
		}
		if p.factor != c.want {
			t.Errorf("%s: factor %g, want %g", c.name, p.factor, c.want)
		}
	}
}

func TestPacerBacksOffOnLatency(t *testing.T) {
	t.Parallel()
	p := newPacer()
	now := time.Unix(1000, 0)
	probe := func(n int, rtt time.Duration) {
		for range n {
			now = now.Add(probeEvery)
			p.probed(now, rtt)
		}
	}
	probe(30, 200*time.Microsecond)
	if p.factor != 1 {
		t.Fatalf("factor %g on a calm server", p.factor)
	}
	probe(25, 900*time.Microsecond)
	if p.factor != 1 {
		t.Errorf("factor %g: 0.7 ms more is no reason", p.factor)
	}
	probe(11, 5*time.Millisecond)
	if p.factor != 0.5 {
		t.Errorf("factor %g after a second of slow answers, want 0.5", p.factor)
	}
	probe(100, 5*time.Millisecond)
	if p.factor != minFactor {
		t.Errorf("factor %g after ten slow seconds, want %g", p.factor, minFactor)
	}
	probe(20, 200*time.Microsecond) // the slow ones leave the window
	before := p.factor
	probe(100, 200*time.Microsecond)
	if p.factor < before*2 || p.factor > before*3 {
		t.Errorf("factor %g ten seconds after %g, want 10 %% more each second", p.factor, before)
	}
	w := p.piped(10, time.Millisecond)
	if w.latency != p.factor || w.memory != 1 {
		t.Errorf("work %+v", w)
	}
}

func TestPacerSlowsDownInAFullServer(t *testing.T) {
	t.Parallel()
	p := newPacer()
	for _, c := range []struct {
		used, limit int64
		want        float64
	}{{96, 100, memoryFactor}, {94, 100, 1}, {100, 0, 1}, {-1, -1, 1}} {
		p.memory(time.Now(), c.used, c.limit)
		if got := p.piped(1, time.Millisecond).memory; got != c.want {
			t.Errorf("used %d of %d: factor %g, want %g", c.used, c.limit, got, c.want)
		}
	}
}

func TestEstimateIsBetweenFloorAndRoundTrip(t *testing.T) {
	t.Parallel()
	p := newPacer()
	p.probed(time.Now(), 100*time.Microsecond)
	for _, c := range []struct{ rtt, floor, want time.Duration }{
		{150, 20, 50}, {110, 20, 20}, {90, 20, 20}, {10, 20, 10}, {900, 20, 200},
	} {
		if got := p.estimate(c.rtt*time.Microsecond, c.floor*time.Microsecond); got != c.want*time.Microsecond {
			t.Errorf("estimate(%v, %v) = %s, want %v", c.rtt, c.floor, got, c.want)
		}
	}
}
