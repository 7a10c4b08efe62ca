package scanner

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// factsEvery is how often facts are saved that change all the time.
const factsEvery = 5 * time.Minute

// FactStore keeps what a scanner knows of a target beyond its locks over a
// restart of the agent: which server processes it saw, the declared slots of
// processes, the largest fences. The text is the scanner's own, versioned JSON
// without any token. Both are called by one goroutine per target.
type FactStore interface {
	SaveFacts(ctx context.Context, target, facts string) error
	// LoadFacts returns "" where there are none.
	LoadFacts(ctx context.Context, target string) (string, error)
}

// facts is what sweeps know of a target beyond its locks, over time. Sweeps use
// it one after the other.
type facts struct {
	servers   servers
	processes processes
	fences    *fences

	loaded  bool
	dirty   bool // something changed that must not wait
	savedAt time.Time
}

func newFacts() *facts {
	return &facts{servers: servers{nodes: map[string]serverSeen{}, open: map[string]flushWindow{}, inherited: map[string]inheritance{}}, processes: processes{}, fences: newFences()}
}

// survey looks at what a sweep, whose locks are known, tells beyond them, and
// puts it there. A sweep of a target that is away tells nothing.
func (s *Scanner) survey(sweep *locksteward.Sweep, swept *source.Sweep, run *sweepRun) {
	if len(sweep.Masters) == 0 {
		return
	}
	f := s.facts
	sweep.Nodes = nil
	alive := map[string]*locksteward.Instance{}
	for i := range swept.Parts {
		p := &swept.Parts[i]
		if p.Answered {
			sweep.Nodes = append(sweep.Nodes, p.Server.State)
		}
		maps.Copy(alive, p.Instances)
	}
	news := f.servers.observe(sweep, swept.Parts, run.parts)
	for i := range sweep.Nodes {
		sweep.Nodes[i].Refusals = f.servers.refusalsOf(sweep.Nodes[i].Addr, sweep.At)
	}
	f.servers.settleFlushes(swept.Parts, run.parts, sweep.At, s.table.takeFlush)
	f.servers.settleFailovers(sweep.At, s.table.takeFailoverSuspects)
	sweep.Events = slices.Clone(f.servers.events)
	for _, e := range news {
		if e.Kind == locksteward.ServerClockStepped {
			s.log.Warn("the clock of a server jumped", zap.String("node", e.Node), zap.Duration("by", e.Step))
		}
	}

	clock := s.clock()
	slotted := f.processes.seeAlive(alive, clock)
	sweep.Silent = f.processes.silent(named(sweep), heartbeats{
		at: sweep.At, clock: clock, alive: alive, unknown: swept.Unknown,
		broken: func(id string) bool { return broken(swept, id, news) }, listeners: swept.Connections,
	})
	sweep.FenceDrops = f.fences.observe(sweep, swept.FenceCounter)
	f.dirty = f.dirty || slotted || len(news) > 0 || f.servers.changed
	f.servers.changed = false
}

// broken reports that nothing follows from a heartbeat that was missed between the
// last two sweeps: something happened to a server that keeps it.
func broken(swept *source.Sweep, process string, news []locksteward.ServerEvent) bool {
	if swept.HomesOf == nil {
		return true
	}
	nodes, known := swept.HomesOf(process)
	return !known || slices.ContainsFunc(news, func(e locksteward.ServerEvent) bool { return slices.Contains(nodes, e.Node) })
}

// named are the processes that locks or losses of a sweep name as holders.
func named(sweep *locksteward.Sweep) []string {
	ids := map[string]bool{}
	for l := range sweep.AllLocks() {
		ids[l.Holder.Instance] = true
	}
	for i := range sweep.Losses {
		ids[sweep.Losses[i].Holder.Instance] = true
	}
	delete(ids, "")
	return slices.Sorted(maps.Keys(ids))
}

func (s *Scanner) loadFacts(ctx context.Context) {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	if s.factStore == nil || s.facts.loaded {
		return
	}
	s.facts.loaded = true
	text, err := s.factStore.LoadFacts(ctx, s.target.Name)
	if err == nil && text != "" {
		err = s.facts.decode(text, s.clock())
	}
	if err != nil {
		s.log.Error("what is known of servers and processes is lost: it begins anew", zap.Error(err))
	}
}

// saveFacts writes what is known, at once if it must not wait. What fails is
// written with the next sweep.
func (s *Scanner) saveFacts(ctx context.Context, last bool) {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	f := s.facts
	if s.factStore == nil || !f.loaded || !f.dirty && !last && s.clock().Sub(f.savedAt) < factsEvery {
		return
	}
	text, err := f.encode()
	if err == nil {
		err = s.factStore.SaveFacts(ctx, s.target.Name, text)
	}
	if err != nil {
		s.log.Error("what is known of servers and processes is not saved: it is tried again after the next sweep", zap.Error(err))
		return
	}
	f.dirty, f.savedAt = false, s.clock()
}
