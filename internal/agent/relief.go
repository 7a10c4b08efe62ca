package agent

import (
	"runtime/debug"
	"sync"
	"time"
)

// reliefAfter is how long after the end of a target its memory goes back to the
// system: several that end together cost one collection.
const reliefAfter = 5 * time.Second

// relief gives back the memory of targets that ended. By itself Go's collector keeps
// what a large target took until as much is allocated again, which a replica that
// stands by never does.
type relief struct {
	mu    sync.Mutex
	timer *time.Timer
}

func (r *relief) soon() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer == nil {
		r.timer = time.AfterFunc(reliefAfter, debug.FreeOSMemory)
		return
	}
	r.timer.Reset(reliefAfter)
}

func (r *relief) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil {
		r.timer.Stop()
	}
}
