package targets

import (
	"runtime/debug"
	"sync"
	"time"
)

// freeMemoryAfter is how long after the end of a target its memory is returned to the
// system: several that end together cost one collection.
const freeMemoryAfter = 5 * time.Second

// memoryReturn returns the memory of targets that ended to the system. By itself Go's
// collector keeps it until as much is allocated again, which a standby replica never does.
type memoryReturn struct {
	mu    sync.Mutex // guards timer
	timer *time.Timer
}

// schedule frees memory after freeMemoryAfter, once for several calls.
func (r *memoryReturn) schedule() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer == nil {
		r.timer = time.AfterFunc(freeMemoryAfter, debug.FreeOSMemory)
		return
	}
	r.timer.Reset(freeMemoryAfter)
}

func (r *memoryReturn) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil {
		r.timer.Stop()
	}
}
