package scanner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// Sweep makes one pass over the target now and returns what it established.
// Trouble with some masters makes their passes incomplete; all trouble is in
// the error too, which is for the log: the sweep is good whether or not there
// is one. A sweep without masters means that the target is away. Sweeps of one
// scanner run one after the other.
func (s *Scanner) Sweep(ctx context.Context) (locksteward.Sweep, error) {
	sweep, err := s.sweepInOrder(ctx)
	out := sweep.Collect() // the next merge goes on in its entries
	s.tracker.end(&out)
	s.order.Unlock()
	return out, err
}

// sweepInOrder is [Scanner.Sweep] whose locks stay in the table, and that leaves s.order locked: until the caller
// has passed the sweep on and unlocks it, the watch passes on nothing that it saw
// later.
func (s *Scanner) sweepInOrder(ctx context.Context) (sweep locksteward.Sweep, err error) {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	merging := sync.OnceFunc(s.order.Lock)
	defer merging() // where the target is away
	s.tracker.begin(s)
	s.table.beginSweep()
	defer s.table.endSweep()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer s.stall.begin(s.cfg.Timeout, s.Paused, func() { cancel(source.ErrStalled) })()
	sweep = locksteward.Sweep{Target: s.target.Name, Started: s.clock(), NoServerFacts: !s.source.Traits().ServerFacts}
	sweep.At = sweep.Started
	s.number++

	run := &sweepRun{s: s}
	swept, err := s.source.Sweep(ctx, source.SweepOptions{Number: s.number, Early: s.found != nil}, run)
	if err != nil {
		s.away(err)
		return sweep, fmt.Errorf("sweep %s: %w", s.target.Name, err)
	}
	sweep.Duration, sweep.Orphans = swept.Duration, swept.Orphans

	merging()
	s.merge(&sweep, swept, run)
	err = errors.Join(s.report(&sweep, swept), swept.Err)
	s.survey(&sweep, swept, run)
	s.rememberProcesses(swept)
	if swept.Applied != nil {
		swept.Applied()
	}
	if err != nil {
		return sweep, fmt.Errorf("sweep %s: %w", s.target.Name, err)
	}
	return sweep, nil
}

// sweepRun takes what the source of a sweep finds ([source.Sink]).
type sweepRun struct {
	s     *Scanner
	parts []sweptPart
}

// sweptPart is what one part of a sweep found, and what the table makes of it.
type sweptPart struct {
	locks []lockState // by [source.Reading.Number]
	// waiters are those that were read with a lock, by its number.
	waiters  map[int32][]locksteward.Waiter
	traitSet traitSet
	flush    flushWindow
	// stood is how many holds were found that stood on another process's data.
	stood int
}

func (r *sweepRun) Parts(count int) {
	known := r.s.table.Len()
	r.parts = make([]sweptPart, count)
	for i := range r.parts {
		r.parts[i] = sweptPart{traitSet: traitSet{}, waiters: map[int32][]locksteward.Waiter{}, locks: make([]lockState, 0, (known+known/8)/count)}
	}
	r.s.tracker.count(count)
}

func (r *sweepRun) Total(_ int, names int64) { r.s.tracker.addTotal(names) }

func (r *sweepRun) Scanned(names int) { r.s.scanned.Add(int64(names)) }

// Answered notes that the target is up from the first page of a sweep on, not only from its
// end. What was wrong with the sweep is reported at its end.
func (r *sweepRun) Answered(_ int, state *locksteward.NodeState) {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.Up {
		return
	}
	s.state = locksteward.TargetState{Target: s.target, Up: true}
	s.state.Target.Mode = s.source.Topology()
	if state != nil {
		s.state.Nodes = []locksteward.NodeState{*state}
	}
}

func (r *sweepRun) Found(ctx context.Context, part int, b source.Batch) {
	news := r.s.table.keep(&r.parts[part], b.Readings, r.s.found != nil)
	if len(news) > 0 {
		r.s.deliver(ctx, b, news)
	}
}

// rememberProcesses keeps what the next sweep compares with.
func (s *Scanner) rememberProcesses(swept *source.Sweep) {
	for _, p := range swept.Parts {
		if id := p.Server.Process; id != "" {
			if len(s.runIDs) > 1024 {
				clear(s.runIDs)
			}
			s.runIDs[id] = true
		}
	}
}

func sortWaiters(waiters []locksteward.Waiter) {
	slices.SortFunc(waiters, func(a, b locksteward.Waiter) int {
		return cmp.Or(cmp.Compare(a.DB, b.DB), strings.Compare(a.Key, b.Key), a.Since.Compare(b.Since), strings.Compare(a.ID, b.ID))
	})
}

// listInstances are the processes by their ids.
func listInstances(alive map[string]*locksteward.Instance) []locksteward.Instance {
	out := make([]locksteward.Instance, 0, len(alive))
	for _, i := range alive {
		out = append(out, *i)
	}
	slices.SortFunc(out, func(a, b locksteward.Instance) int { return strings.Compare(a.ID, b.ID) })
	return out
}
