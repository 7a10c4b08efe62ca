// Package heartbeat shows others that a process lives, and what it has done with locks so
// far. No lock depends on it.
package heartbeat

import (
	"context"
	_ "embed"
	"maps"
	"sync"
	"time"

	"github.com/locksteward/locksteward/lock/internal/retry"
	"github.com/locksteward/locksteward/lock/internal/transport"
	"github.com/locksteward/locksteward/lock/record"
)

var (
	//go:embed beat.lua
	beatText string

	// Script writes a heartbeat.
	Script = transport.NewScript("heartbeat", beatText, transport.Now)
)

// Heartbeat is that of one process. It is safe for concurrent use.
type Heartbeat struct {
	key     string
	process record.Instance
	write   Write

	mu     sync.Mutex
	counts map[string]record.Counts // by class
}

// Write makes one round trip of Script, and reports its outcome.
type Write func(ctx context.Context, keys []string, args []any) (reply any, err error)

// New returns the heartbeat of a process, of which key is the instance key. Counts of
// process are not used.
func New(key string, process record.Instance, write Write) *Heartbeat {
	return &Heartbeat{key: key, process: process, write: write, counts: map[string]record.Counts{}}
}

// Run writes the heartbeat until ctx ends.
func (h *Heartbeat) Run(ctx context.Context) {
	started := "0" // the server says when that was, by its own clock
	for failures := 0; ; {
		process := h.process
		process.Counts = h.Counts()
		args := append([]any{record.HeartbeatTTL.Milliseconds(), started}, process.Fields()...)
		reply, err := h.write(ctx, []string{h.key}, args)
		next := record.Heartbeat
		if err != nil {
			next = retry.Backoff(failures, 200*time.Millisecond, record.Heartbeat)
			failures++
		} else {
			failures = 0
			if s := transport.Text(reply); s != "" {
				started = s
			}
		}
		if !retry.Pause(ctx, next) {
			return
		}
	}
}

// Count adds n to what was done with locks of a class. Classes beyond record.MaxClasses
// are counted together as record.OtherClasses.
func (h *Heartbeat) Count(class string, n record.Counts) {
	h.mu.Lock()
	defer h.mu.Unlock()
	sum, known := h.counts[class]
	if !known && len(h.counts) >= record.MaxClasses {
		class = record.OtherClasses
		sum = h.counts[class]
	}
	sum.Acquired += n.Acquired
	sum.Failed += n.Failed
	sum.Contended += n.Contended
	sum.Renewed += n.Renewed
	sum.RenewFailures += n.RenewFailures
	sum.Lost += n.Lost
	h.counts[class] = sum
}

// Counts returns what was counted so far, by class.
func (h *Heartbeat) Counts() map[string]record.Counts {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.counts)
}
