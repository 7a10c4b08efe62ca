package pace

import (
	"slices"
	"sync"
	"time"
)

// Bound is which end of [Config] limits reading.
type Bound string

const (
	// Idle is the share that the use by others leaves, idle·(1−u)².
	Idle Bound = "idle"
	// Busy is the least share.
	Busy Bound = "busy"
)

// Reason is why a server is read no faster.
type Reason string

const (
	// Headroom is that the rule asks for no more.
	Headroom Reason = "headroom"
	// Used is that others use the server.
	Used Reason = "used"
	// Starting is that too few samples agree yet.
	Starting Reason = "starting"
	// Unknown is a server that does not report its processor time, or only that of all its threads.
	Unknown Reason = "unknown"
	// Jumped is a server whose counters went back, or faster than time: they are those of several servers.
	Jumped Reason = "jumped"
	// Delayed is a server that answers later than it can.
	Delayed Reason = "delayed"
	// Memory is a server that is nearly out of memory.
	Memory Reason = "memory"
	// Average is the bound of 3 % in ten minutes.
	Average Reason = "average"
)

// Reasons returns all reasons.
func Reasons() []Reason {
	return []Reason{Headroom, Used, Starting, Unknown, Jumped, Delayed, Memory, Average}
}

// State is how fast a server may be read now, and why no faster.
type State struct {
	Share float64 // of its main thread
	// Use is the part of that thread that others use, 1 where it is not known.
	Use    float64
	Bound  Bound
	Reason Reason
}

// Server is the pace of one server. Make it with [Host.Server].
type Server struct {
	cfg  Config
	host *Host

	mu     sync.Mutex // guards what follows; the mutex of host may be taken while it is held
	usage  usage
	delay  delay
	memory bool
	scans  cost
	pipes  cost
	// ours is what we are thought to have cost since the last sample, floor the floors of that.
	ours, floor time.Duration
	last        State         // what the rule said last, once enough samples agreed
	total       time.Duration // of all that we cost
	marked      time.Duration // total when the last sweep began

	// mosts are by how much our calls can have been dearer than their floors in the last intervals: the server did no
	// more work for all clients together.
	mosts []float64
}

func newServer(host *Host, cfg Config) *Server {
	return &Server{
		cfg: cfg.WithDefaults(), host: host,
		delay: delay{factor: 1},
		scans: cost{each: keyCost, batch: firstBatch},
		pipes: cost{each: commandCost, batch: firstBatch},
	}
}

// saved is the least wait while nobody else uses the server. At a share of 10 % that is some 20 calls.
const saved = 40 * time.Millisecond

const (
	mostsKept = 20                     // 1 s
	mostsFrom = 200 * time.Microsecond // of our work in an interval that says something of its cost
)

// Sample takes the counters of the server, which should be read every [SampleEvery] during a sweep.
func (s *Server) Sample(now time.Time, c Counters) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.usage.main
	s.usage.add(now, c, s.ours)
	if len(s.usage.recent) > 0 && s.floor >= mostsFrom { // the sample and the one before are of one process and close together
		s.mosts = append(s.mosts, (c.main()-before)/s.floor.Seconds())
		s.mosts = s.mosts[max(0, len(s.mosts)-mostsKept):]
	}
	s.ours, s.floor = 0, 0
}

// most returns by how much our calls can be dearer than their floors.
func (s *Server) most() float64 {
	if len(s.mosts) == 0 {
		return dearest
	}
	return slices.Min(s.mosts)
}

// Probed takes the round trip of a trivial command, which should be sent every [ProbeEvery] during a sweep, and for how
// long our own process waited for a processor meanwhile, 0 where that is not known.
func (s *Server) Probed(now time.Time, rtt, own time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay.add(now, rtt, own)
	s.spend(now, callCost, callCost)
}

// NearlyFull says whether the server is nearly out of memory.
func (s *Server) NearlyFull(full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory = full
}

// Scanned books a SCAN of COUNT n that took rtt.
func (s *Server) Scanned(now time.Time, n int, rtt time.Duration) { s.called(now, &s.scans, n, rtt) }

// Piped books a pipeline of n commands that took rtt.
func (s *Server) Piped(now time.Time, n int, rtt time.Duration) { s.called(now, &s.pipes, n, rtt) }

func (s *Server) called(now time.Time, c *cost, n int, rtt time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.add(n, rtt, s.delay.usual())
	ratio := c.ratio(s.most())
	c.fit(s.long(now), ratio)
	s.spend(now, time.Duration(float64(c.floor(n))*ratio), c.floor(n))
}

// Spend books a call of another kind that took the server so long.
func (s *Server) Spend(now time.Time, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spend(now, took, took)
}

func (s *Server) spend(now time.Time, took, floor time.Duration) {
	s.ours += took
	s.floor += floor
	s.total += took
	st := s.state(now)
	if st.Reason != Starting {
		s.last = st
	}
	s.host.spend(now, took, st.Share)
}

// long is how long one write may keep the server.
func (s *Server) long(now time.Time) time.Duration {
	if s.usage.quiet(now) {
		return longQuiet
	}
	return longUsed
}

// Count returns the COUNT of the next SCAN.
func (s *Server) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.scans.batch
}

// State returns how fast the server may be read now.
func (s *Server) State(now time.Time) State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state(now)
}

// Latest is State, but between two sweeps, when nothing is sampled, that of the last one.
func (s *Server) Latest(now time.Time) State {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.state(now); st.Reason != Starting || s.last.Share == 0 {
		return st
	}
	return s.last
}

func (s *Server) state(now time.Time) State {
	use, why := s.usage.now(now)
	idle, busy := float64(s.cfg.Idle), float64(s.cfg.Busy)
	st := State{Share: idle * (1 - use) * (1 - use), Use: use, Bound: Idle, Reason: Headroom}
	lower := func(share float64, why Reason) {
		if share = max(share, busy); share < st.Share {
			st.Share, st.Reason = share, why
		}
	}
	lower(st.Share*s.delay.factor, Delayed)
	if s.memory {
		lower(busy, Memory)
	}
	if st.Share <= busy {
		st.Share, st.Bound = busy, Busy
		switch {
		case why != "":
			st.Reason = why
		case st.Reason == Headroom && use > 0:
			st.Reason = Used
		}
	}
	if most := s.host.most(now); most < st.Share {
		st.Share, st.Reason = most, Average
	}
	return st
}

// Wait returns for how long nothing may be sent to the server, 0 for not at all. While nobody else uses it, short waits
// are saved up: each costs a wake-up on both machines, and what comes after it finds cold caches.
func (s *Server) Wait(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.host.wait(now)
	if d < saved && s.usage.quiet(now) {
		return 0
	}
	return d
}

// Mark says that a sweep begins.
func (s *Server) Mark() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marked = s.total
}

// Ready returns for how long the next sweep must not begin so that there is room within the average for one that costs
// what the last one did, 0 for not at all.
func (s *Server) Ready(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.host.ready(now, s.total-s.marked)
}
