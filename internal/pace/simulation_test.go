package pace

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// world is a server, its other clients, the network and our own machine, in a time of its own.
type world struct {
	now, began time.Time
	rnd        *rand.Rand

	load    func(t time.Duration) float64 // use of the main thread by others, [0, 1]
	late    func() time.Duration          // delay of our own machine, of a wake-up or an answer
	stolen  func() time.Duration          // what a neighbor on the server's core takes from one call
	network time.Duration                 // of a round trip
	dear    float64                       // what calls cost, in multiples of ours
	report  func(main float64) Counters   // INFO cpu

	main float64 // processor time of the main thread, seconds
	ours time.Duration
	// lastLate is by how much our machine was late in the last call.
	lastLate time.Duration
	// spent is what we cost by 100 ms.
	spent map[int]time.Duration
}

func newWorld() *world {
	start := time.Unix(1_800_000_000, 0)
	none := func() time.Duration { return 0 }
	return &world{
		now: start, began: start, rnd: rand.New(rand.NewPCG(1, 2)),
		load: constant(0), late: none, stolen: none, network: 40 * time.Microsecond, dear: 1,
		report: func(main float64) Counters { return Counters{Active: -1, Main: main, Process: 1.1 * main} },
		main:   1000, spent: map[int]time.Duration{},
	}
}

func constant(u float64) func(time.Duration) float64 { return func(time.Duration) float64 { return u } }

func (w *world) at() time.Duration { return w.now.Sub(w.began) }

func (w *world) pass(d time.Duration) {
	w.main += w.load(w.at()) * d.Seconds()
	w.now = w.now.Add(d)
}

// call executes a command and returns its round trip.
func (w *world) call(cost time.Duration) time.Duration {
	cost = time.Duration(float64(cost) * w.dear)
	u := min(0.98, w.load(w.at()))
	// M/D/1 with commands of 5 µs, as a mean of an exponential distribution.
	queue := time.Duration(w.rnd.ExpFloat64() * u / (2 * (1 - u)) * float64(5*time.Microsecond))
	w.lastLate = w.late()
	rtt := w.network + queue + w.stolen() + cost + w.lastLate
	w.pass(rtt)
	w.main += cost.Seconds()
	w.ours += cost
	w.spent[int(w.at()/(100*time.Millisecond))] += cost
	return rtt
}

// sweep reads keys of a server as the scanner does, for at most limit.
func (w *world) sweep(s *Server, keys int, limit time.Duration) (read int) {
	var sampled, probed time.Time
	began := w.now
	for read < keys && w.now.Sub(began) < limit {
		if d := s.Wait(w.now); d > 0 {
			late := w.late()
			w.pass(d + late)
		}
		if w.now.Sub(sampled) >= SampleEvery {
			sampled = w.now
			s.Piped(w.now, 1, w.call(callCost+commandCost))
			s.Sample(w.now, w.report(w.main))
		}
		if w.now.Sub(probed) >= ProbeEvery {
			probed = w.now
			rtt := w.call(callCost)
			s.Probed(w.now, rtt, w.lastLate)
		}
		n := s.Count()
		s.Scanned(w.now, n, w.call(callCost+time.Duration(n)*keyCost))
		read += n
	}
	return read
}

// share returns what we took of the server between two times.
func (w *world) share(from, to time.Duration) float64 {
	sum := time.Duration(0)
	for i := int(from / (100 * time.Millisecond)); i < int(to/(100*time.Millisecond)); i++ {
		sum += w.spent[i]
	}
	return float64(sum) / float64(to-from)
}

// TestSimulation plays loads against the rule. docs/pace.md quotes its figures.
func TestSimulation(t *testing.T) {
	t.Parallel()
	type want struct {
		most     time.Duration // a sweep of a million keys takes, 0 for more than a minute
		from, to time.Duration // when the share is measured
		low, up  float64       // its bounds
		reason   Reason        // then
	}
	busyLoop := func(w *world) func() time.Duration {
		return func() time.Duration {
			if w.rnd.Float64() < 0.5 {
				return time.Duration(w.rnd.Float64() * 4e6)
			}
			return 0
		}
	}
	for _, c := range []struct {
		name string
		set  func(*world)
		want want
	}{
		{"idle", func(*world) {}, want{12 * time.Second, time.Second, 5 * time.Second, 0.08, 0.11, Headroom}},
		{
			"idle, calls cost three times as much", func(w *world) { w.dear = 3 },
			want{36 * time.Second, time.Second, 5 * time.Second, 0.07, 0.12, Headroom},
		},
		{
			"idle, a slow network", func(w *world) { w.network = 5 * time.Millisecond },
			want{20 * time.Second, time.Second, 5 * time.Second, 0.03, 0.11, Headroom},
		},
		{
			"idle, the agent's machine is busy", func(w *world) { w.late = busyLoop(w) },
			want{24 * time.Second, time.Second, 5 * time.Second, 0.03, 0.12, ""},
		},
		{
			"used at 10 %", func(w *world) { w.load = constant(0.1) },
			want{20 * time.Second, time.Second, 5 * time.Second, 0.06, 0.09, Headroom},
		},
		{
			"used at 50 %", func(w *world) { w.load = constant(0.5) },
			want{60 * time.Second, time.Second, 5 * time.Second, 0.018, 0.03, Headroom},
		},
		{
			"saturated", func(w *world) { w.load = constant(0.99) },
			want{0, time.Second, 5 * time.Second, 0.007, 0.012, Used},
		},
		{"a load begins", func(w *world) {
			w.load = func(at time.Duration) float64 {
				if at > 2*time.Second {
					return 0.99
				}
				return 0
			}
		}, want{0, 2200 * time.Millisecond, 6 * time.Second, 0.007, 0.013, Used}},
		{"a saw-tooth of 2 s", func(w *world) {
			w.load = func(at time.Duration) float64 { return float64(at%(2*time.Second)) / float64(2*time.Second) }
		}, want{60 * time.Second, time.Second, 9 * time.Second, 0.02, 0.04, ""}},
		{"a neighbor on the server's core", func(w *world) {
			w.stolen = func() time.Duration {
				if w.at() > time.Second && w.rnd.Float64() < 0.5 {
					return time.Duration(w.rnd.Float64() * 6e6)
				}
				return 0
			}
		}, want{0, 5 * time.Second, 10 * time.Second, 0.002, 0.03, Delayed}},
		{"io-threads without figures of the main thread", func(w *world) {
			w.report = func(main float64) Counters {
				return Counters{Active: -1, Main: -1, Process: 3 * main, IOThreads: true}
			}
		}, want{0, time.Second, 5 * time.Second, 0.005, 0.012, Unknown}},
		{"no counters", func(w *world) {
			w.report = func(float64) Counters { return Counters{Active: -1, Main: -1, Process: -1} }
		}, want{0, time.Second, 5 * time.Second, 0.005, 0.012, Unknown}},
		{"a proxy before two servers", func(w *world) {
			w.report = func(main float64) Counters {
				return Counters{Active: -1, Main: main + 500*float64(w.rnd.IntN(2)), Process: -1}
			}
		}, want{0, time.Second, 5 * time.Second, 0.005, 0.012, Jumped}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			c.set(w)
			s := new(Host).Server(Config{})
			limit := max(c.want.to, c.want.most)
			read := w.sweep(s, 1_000_000, limit)
			took := w.at()
			share := w.share(c.want.from, min(c.want.to, took))
			t.Logf("%d keys in %.1f s, share %.2f %% in %v to %v, %+v", read, took.Seconds(), 100*share, c.want.from, min(c.want.to, took), s.State(w.now))
			if c.want.most > 0 && read < 1_000_000 {
				t.Errorf("%d of a million keys in %v", read, took)
			}
			if share < c.want.low || share > c.want.up {
				t.Errorf("took %.2f %% of the server; want %.2f to %.2f", 100*share, 100*c.want.low, 100*c.want.up)
			}
			if st := s.State(w.now); c.want.reason != "" && st.Reason != c.want.reason {
				t.Errorf("%+v; want reason %s", st, c.want.reason)
			}
		})
	}
}

// Twelve masters on one machine take no more of it together than one would.
func TestSimulationOfOneHost(t *testing.T) {
	t.Parallel()
	var hosts Hosts
	w := newWorld()
	var servers []*Server
	for i := range 12 {
		servers = append(servers, hosts.At(fmt.Sprintf("127.0.0.1:%d", 7000+i)).Server(Config{}))
	}
	for w.at() < 10*time.Second { // in turn: a time of one thread
		for _, s := range servers {
			w.sweep(s, 1, time.Second)
		}
	}
	if share := w.share(time.Second, 10*time.Second); share > 0.12 {
		t.Errorf("twelve servers on one host: %.1f %% of a core", 100*share)
	}
}

// However often a server is swept, it is 3 % in ten minutes.
func TestSimulationOfTheAverage(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := new(Host).Server(Config{Idle: 0.5})
	w.sweep(s, 1<<40, 30*time.Minute)
	var worst time.Duration
	for from := 0; from+6000 <= int(w.at()/(100*time.Millisecond)); from += 100 {
		sum := time.Duration(0)
		for i := from; i < from+6000; i++ {
			sum += w.spent[i]
		}
		worst = max(worst, sum)
	}
	t.Logf("at most %v in ten minutes", worst)
	if limit := 18 * time.Second; worst > limit+limit/20 {
		t.Errorf("%v in ten minutes; want at most %v", worst, limit)
	}
	if st := s.State(w.now); st.Reason != Average {
		t.Errorf("%+v", st)
	}
	if total := w.share(0, w.at()); total < 0.025 {
		t.Errorf("%.2f %% in half an hour: the average is not used", 100*total)
	}
}
