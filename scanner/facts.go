package scanner

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
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

// facts is what sweeps tell of a target beyond its locks, over time. Sweeps use
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

// serverAnswers is what a sweep asked the servers beyond their keys.
type serverAnswers struct {
	flushes   map[string]int64 // by address; not there: not known
	listeners map[string]int   // by id of a silent process; likewise
}

// askServers asks what [Scanner.survey] needs: how often data was flushed, and
// who listens on the channels of processes whose heartbeat is not there.
func (s *Scanner) askServers(ctx context.Context, passes []*pass, unknown map[string]bool) serverAnswers {
	silent := map[string]bool{}
	for _, p := range passes {
		for i := range p.out.locks {
			silent[p.out.locks[i].holderInstance()] = true
		}
		for i := range p.out.losses {
			silent[p.out.losses[i].Holder.Instance] = true
		}
	}
	for _, p := range passes {
		maps.DeleteFunc(silent, func(id string, _ bool) bool { return id == "" || unknown[id] || p.out.instances[id] != nil })
	}
	return serverAnswers{
		flushes:   s.countFlushes(ctx, passes),
		listeners: s.countListeners(ctx, slices.Sorted(maps.Keys(silent)), passes),
	}
}

// survey looks at what a sweep, whose locks are known, tells beyond them, and
// puts it there. A sweep of a target that is away tells nothing.
func (s *Scanner) survey(sweep *locksteward.Sweep, passes []*pass, unknown map[string]bool, asked serverAnswers) {
	if len(sweep.Masters) == 0 {
		return
	}
	f := s.facts
	sweep.Nodes = nil
	alive := map[string]*locksteward.Instance{}
	for _, p := range passes {
		if p.out.answered {
			sweep.Nodes = append(sweep.Nodes, p.out.info.node(p.master.Addr))
		}
		maps.Copy(alive, p.out.instances)
	}
	news := f.servers.observe(sweep, passes, asked.flushes)
	for i := range sweep.Nodes {
		sweep.Nodes[i].Refusals = f.servers.refusalsOf(sweep.Nodes[i].Addr, sweep.At)
	}
	f.servers.settleFlushes(passes, sweep.At, s.table.takeFlush)
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
		at: sweep.At, clock: clock, alive: alive, unknown: unknown,
		broken: func(id string) bool { return s.broken(id, passes, news) }, listeners: asked.listeners,
	})
	sweep.FenceDrops = f.fences.observe(sweep, func(key string) string { return s.prefixOf(passes, key) })
	f.dirty = f.dirty || slotted || len(news) > 0 || f.servers.changed
	f.servers.changed = false
}

// broken says that nothing follows from a heartbeat that was missed between the
// last two sweeps: something happened to a server that keeps it.
func (s *Scanner) broken(id string, passes []*pass, news []locksteward.ServerEvent) bool {
	for _, key := range s.instanceKeys(id) {
		p := owner(passes, key.key)
		if p == nil || !p.out.answered {
			return true
		}
		if slices.ContainsFunc(news, func(e locksteward.ServerEvent) bool { return e.Node == p.master.Addr }) {
			return true
		}
	}
	return false
}

// prefixOf is the prefix of the keys beside a lock.
func (s *Scanner) prefixOf(passes []*pass, key string) string {
	for _, p := range passes {
		if prefix, ok := p.out.prefixes[key]; ok {
			return prefix
		}
	}
	return s.prefixes[0]
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
