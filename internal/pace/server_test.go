package pace

import (
	"math/rand/v2"
	"testing"
	"time"
)

// idle returns a server that samples agree is used by nobody.
func idle(now *time.Time) *Server {
	s := new(Host).Server(Config{})
	for range 5 {
		*now = now.Add(SampleEvery)
		s.Sample(*now, Counters{Active: -1, Main: 7, Process: -1})
	}
	return s
}

func TestCallsAreShort(t *testing.T) {
	t.Parallel()
	for name, perKey := range map[string]time.Duration{"fast": 300 * time.Nanosecond, "usual": 600 * time.Nanosecond, "slow": 5 * time.Microsecond, "very slow": 100 * time.Microsecond} {
		now := time.Unix(1_800_000_000, 0)
		s := idle(&now)
		const network = 2 * time.Millisecond // a server far away is not a slow server
		s.Probed(now, network+callCost, 0)
		var took time.Duration
		for range 50 {
			n := s.Count()
			took = callCost + time.Duration(n)*perKey
			s.Scanned(now, n, network+took)
		}
		if took > longQuiet*11/10 && s.Count() > minBatch {
			t.Errorf("%s: COUNT %d keeps the server for %s", name, s.Count(), took)
		}
		if s.Count() < minBatch || perKey < time.Microsecond && s.Count() < 300 {
			t.Errorf("%s: COUNT %d is smaller than it need be", name, s.Count())
		}
	}
}

// On a busy server a call mostly waits for others, which must not be taken for its size.
func TestCallsBehindAQueue(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	s, now := new(Host).Server(Config{}), time.Unix(1_800_000_000, 0)
	wait := func() time.Duration {
		return 200*time.Microsecond + time.Duration(rnd.ExpFloat64()*float64(800*time.Microsecond))
	}
	sum := 0
	for i := range 400 {
		now = now.Add(ProbeEvery)
		s.Probed(now, wait(), 0)
		n := s.Count()
		s.Scanned(now, n, wait()+time.Duration(n)*600*time.Nanosecond)
		if i >= 100 {
			sum += s.Count()
		}
	}
	if mean := sum / 300; mean < 40 || mean > 350 {
		t.Errorf("COUNT %d on average", mean)
	}
}

func TestStates(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	s := new(Host).Server(Config{})
	check := func(what string, want State) {
		t.Helper()
		if got := s.State(now); got != want {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	check("nothing is known", State{0.01, 1, Busy, Starting})
	s = idle(&now)
	check("idle", State{0.1, 0, Idle, Headroom})
	s.NearlyFull(true)
	check("out of memory", State{0.01, 0, Busy, Memory})
	s.NearlyFull(false)
	s.Sample(now.Add(SampleEvery), Counters{Active: -1, Main: -1, Process: 5, IOThreads: true})
	now = now.Add(SampleEvery)
	check("threads without figures of the main one", State{0.01, 1, Busy, Unknown})
	s = idle(&now)
	now = now.Add(SampleEvery)
	s.Sample(now, Counters{Active: -1, Main: 6, Process: -1})
	check("counters that go back", State{0.01, 1, Busy, Jumped})
	s = idle(&now)
	now = now.Add(2 * time.Second)
	check("not sampled for two seconds", State{0.01, 1, Busy, Starting})
	s = idle(&now)
	s.Spend(now, time.Microsecond)
	now = now.Add(time.Minute)
	if got := s.Latest(now); got != (State{0.1, 0, Idle, Headroom}) {
		t.Errorf("between two sweeps: %+v", got)
	}
	s = idle(&now)
	now = now.Add(SampleEvery)
	s.Sample(now, Counters{Active: -1, Main: 7 + 0.5*SampleEvery.Seconds(), Process: 9})
	if got := s.State(now); got.Use < 0.49 || got.Use > 0.51 || got.Share < 0.024 || got.Share > 0.027 {
		t.Errorf("half used: %+v", got)
	}
}

func TestDelay(t *testing.T) {
	t.Parallel()
	d, now := delay{factor: 1}, time.Unix(1_800_000_000, 0)
	probe := func(n int, rtt time.Duration) {
		for range n {
			now = now.Add(ProbeEvery)
			d.add(now, rtt, 0)
		}
	}
	probe(30, 200*time.Microsecond)
	probe(25, 900*time.Microsecond)
	if d.factor != 1 {
		t.Errorf("factor %g: 0.7 ms more is no reason", d.factor)
	}
	probe(10, 5*time.Millisecond)
	if d.factor > 0.5 {
		t.Errorf("factor %g after a second of slow answers", d.factor)
	}
	probe(100, 5*time.Millisecond)
	if d.factor != lowest {
		t.Errorf("factor %g after ten slow seconds", d.factor)
	}
	before := d.factor
	probe(200, 200*time.Microsecond)
	if d.factor <= before || d.factor > 1 {
		t.Errorf("factor %g twenty seconds later", d.factor)
	}

	own := delay{factor: 1}
	for n := range 100 {
		now = now.Add(ProbeEvery)
		if n < 50 {
			own.add(now, 200*time.Microsecond, 0)
		} else { // our own machine is late by as much
			own.add(now, 5*time.Millisecond, 4900*time.Microsecond)
		}
	}
	if own.factor != 1 {
		t.Errorf("factor %g for delay of our own machine", own.factor)
	}
}

// A sweep that would not fit into ten minutes begins later.
func TestReady(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	s := new(Host).Server(Config{})
	s.Mark()
	s.Spend(now, 5*time.Second)
	if d := s.Ready(now); d != 0 {
		t.Errorf("after 5 of 18 s: %v", d)
	}
	s.Mark()
	s.Spend(now.Add(time.Minute), 9*time.Second)
	at := now.Add(2 * time.Minute)
	d := s.Ready(at)
	if d < 7*time.Minute || d > 9*time.Minute {
		t.Errorf("after 14 of 18 s, the next costs 9: begins in %v; want when the first 5 are ten minutes ago", d)
	}
	if again := s.Ready(at.Add(d)); again != 0 {
		t.Errorf("then still %v", again)
	}
}
