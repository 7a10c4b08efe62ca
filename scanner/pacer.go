package scanner

import (
	"slices"
	"time"
)

// What the pacer aims at.
const (
	firstCount = 100  // COUNT of the first SCAN
	minCount   = 10   // below that a page is mostly round trip
	maxCount   = 1000 // without a budget: one call then blocks a server for about 0.5 ms
	// callTarget is how long one SCAN may keep the server, and everyone else
	// waiting: far below the 0.5 ms that are promised, since it is felt at once, since
	// among others' commands a key costs up to three times its floor, and since what
	// a kernel or a hypervisor takes from the server meanwhile comes on top. Of SCANs
	// of 120 µs 0.6 in each second of their execution took over 0.5 ms on a virtual
	// machine, of 40 µs 0.25, of commands of 2 µs 0.15 to 0.3.
	callTarget = 60 * time.Microsecond

	probeEvery  = 100 * time.Millisecond
	probeKept   = 256 // for the best round trip: about 26 s
	probeRecent = 20  // for the 95th percentile and the median: 2 s
	scanRecent  = 15  // of the SCANs whose median counts

	// crowded is the part of its time which the thread of a server that executes commands
	// may be busy for others without our giving way. What we take of a server is taken from
	// others long before it has no time left: they wait for rho/2(1-rho) commands (M/D/1), which
	// is 1.5 here and 4.5 at 0.9, and their clients are as busy as it is.
	crowded      = 0.75
	minFactor    = 1.0 / 8
	memoryFactor = 1.0 / 4
	memoryLimit  = 0.95
	memoryEvery  = 10 * time.Second
)

// Costs of a call as measured on Redis 7.0. They are a floor under what is seen
// from outside, where noise could hide it, and, times maxOver, a ceiling: what
// is above that was other clients' work, or ours, not what the server did for us.
const (
	callCost    = 20 * time.Microsecond
	keyCost     = 500 * time.Nanosecond // per COUNT of SCAN
	commandCost = 500 * time.Nanosecond // per command of a pipeline
	maxOver     = 10
)

// pacer learns from one master's answers how large a SCAN may be and how fast
// to go. It belongs to the one goroutine that sweeps that master.
type pacer struct {
	count int
	// dear is what each of the last scanRecent SCANs took beyond the usual trivial
	// command, as a multiple of the floor of its cost.
	dear []float64

	probes    []time.Duration // last probeKept round trips of a trivial command
	probedAt  time.Time
	factor    float64   // on the share: lowered by latency
	loweredAt time.Time // last
	changedAt time.Time // last, either way

	full     bool // memory pressure
	memoryAt time.Time

	meter meter
}

func newPacer() *pacer {
	return &pacer{count: firstCount, factor: 1, meter: meter{scale: 1}}
}

// scanCost is what a SCAN costs a server at least.
func scanCost(count int) time.Duration { return callCost + time.Duration(count)*keyCost }

// best returns the shortest round trip of a trivial command: what a call costs
// without the server's work.
func (p *pacer) best() time.Duration {
	if len(p.probes) == 0 {
		return 0
	}
	return slices.Min(p.probes)
}

// probed takes the round trip of a trivial command. When the 95th percentile of
// the recent ones is far above the best, other clients wait too, and a server that
// has little time left gives us that of others: the speed is halved, at once but at most once a
// second, and comes back by 10 % a second.
func (p *pacer) probed(now time.Time, rtt time.Duration) {
	p.probedAt = now
	p.probes = append(p.probes, rtt)
	if len(p.probes) > probeKept {
		p.probes = p.probes[1:]
	}
	if p.changedAt.IsZero() {
		p.changedAt = now
	}
	if p.slow() || p.meter.busy > crowded {
		if now.Sub(p.loweredAt) >= time.Second {
			p.factor = max(p.factor/2, minFactor)
			p.loweredAt, p.changedAt = now, now
		}
		return
	}
	if elapsed := now.Sub(p.changedAt); elapsed >= time.Second {
		p.factor = min(1, p.factor*(1+0.1*elapsed.Seconds()))
		p.changedAt = now
	}
}

// recent returns the latest round trips of trivial commands, shortest first.
func (p *pacer) recent() []time.Duration {
	recent := slices.Clone(p.probes[max(0, len(p.probes)-probeRecent):])
	slices.Sort(recent)
	return recent
}

func (p *pacer) slow() bool {
	recent := p.recent()
	if len(recent) < 5 {
		return false
	}
	p95 := recent[(len(recent)*95-1)/100]
	best := p.best()
	return p95 > max(2*best, best+time.Millisecond)
}

// memory takes what INFO says of memory; limit 0 is "none".
func (p *pacer) memory(now time.Time, used, limit int64) {
	p.memoryAt = now
	p.full = limit > 0 && float64(used) > memoryLimit*float64(limit)
}

// scanned books a SCAN of COUNT count that took rtt, and tunes the next one.
//
// On a busy server a call mostly waits for others, and that says nothing of its
// size. Trivial commands wait as long, so the difference of the two medians is what
// the SCANs took; one alone says only that it was too large, if it took longer than
// any trivial command lately.
func (p *pacer) scanned(count int, rtt time.Duration) work {
	var usual, worst time.Duration
	if recent := p.recent(); len(recent) > 0 {
		usual, worst = recent[len(recent)/2], recent[len(recent)-1]
	}
	floor := scanCost(count)
	p.dear = append(p.dear, float64(rtt-usual)/float64(floor))
	p.dear = p.dear[max(0, len(p.dear)-scanRecent):]
	dear := slices.Sorted(slices.Values(p.dear))
	fit := int((time.Duration(float64(callTarget)/max(1, dear[len(dear)/2])) - callCost) / keyCost)
	if rtt-worst > 2*callTarget {
		fit = min(fit, count/2)
	}
	p.count = min(max(fit, minCount), 2*p.count)
	return p.work(p.estimate(rtt, floor))
}

// piped books a pipeline of n commands that took rtt.
func (p *pacer) piped(n int, rtt time.Duration) work {
	return p.work(p.estimate(rtt, callCost+time.Duration(n)*commandCost))
}

// estimate returns the server's part of a round trip: what it took beyond the
// best trivial one, at least floor, never more than all of it or maxOver floors.
func (p *pacer) estimate(rtt, floor time.Duration) time.Duration {
	return min(rtt, maxOver*floor, max(rtt-p.best(), floor))
}

func (p *pacer) work(took time.Duration) work {
	w := work{took: p.meter.estimate(took), latency: p.factor, memory: 1}
	if p.full {
		w.memory = memoryFactor
	}
	return w
}
