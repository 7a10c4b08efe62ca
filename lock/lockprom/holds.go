package lockprom

import (
	"sync"
	"time"
)

// holds are the holds of one client that have not ended. A hold may end more
// than once: it is lost by the clock, and released later; its release is of
// unknown outcome, and tried again. Only the first reported end counts.
type holds struct {
	shards [shardCount]shard
}

const (
	// shardCount spreads holds over several mutexes; a power of two.
	shardCount = 16
	// earlyPerShard bounds the losses that were reported before their acquire. The
	// time between the two is some instructions of one goroutine.
	earlyPerShard = 16
)

type shard struct {
	mu     sync.Mutex
	closed bool
	open   map[string]*series // by acquisition id
	early  []earlyLoss
}

// earlyLoss is a hold that was lost before its acquire was reported.
type earlyLoss struct {
	id   string
	took time.Duration
}

// shard returns the one of an id, whose characters are random.
func (h *holds) shard(id string) *shard {
	if id == "" {
		return &h.shards[0]
	}
	return &h.shards[id[len(id)-1]&(shardCount-1)]
}

// begin registers a hold. When its loss came first, it says so, and how long the
// hold had lasted; the hold is not registered then.
func (h *holds) begin(id string, s *series) (took time.Duration, lost bool) {
	sh := h.shard(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for i, e := range sh.early {
		if e.id == id {
			sh.early = append(sh.early[:i], sh.early[i+1:]...)
			return e.took, true
		}
	}
	if sh.closed || sh.open[id] != nil {
		return 0, false
	}
	if sh.open == nil {
		sh.open = map[string]*series{}
	}
	sh.open[id] = s
	s.held.Inc()
	return 0, false
}

// end takes a hold away and returns its series; nil if it has ended already, or
// began before anybody looked.
func (h *holds) end(id string) *series {
	sh := h.shard(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.end(id)
}

// lose is end for a loss, which may be reported before the acquire is.
func (h *holds) lose(id string, took time.Duration) *series {
	sh := h.shard(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s := sh.end(id)
	if s == nil && !sh.closed {
		if len(sh.early) == earlyPerShard {
			sh.early = append(sh.early[:0], sh.early[1:]...)
		}
		sh.early = append(sh.early, earlyLoss{id, took})
	}
	return s
}

// end is as that of holds; mu is held.
func (sh *shard) end(id string) *series {
	s := sh.open[id]
	if s != nil {
		delete(sh.open, id)
		s.held.Dec()
	}
	return s
}

// close takes all holds away: nobody will tell of their end.
func (h *holds) close() {
	for i := range h.shards {
		sh := &h.shards[i]
		sh.mu.Lock()
		sh.closed = true
		for _, s := range sh.open {
			s.held.Dec()
		}
		sh.open, sh.early = nil, nil
		sh.mu.Unlock()
	}
}
