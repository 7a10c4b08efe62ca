package scanner

import (
	"sync"
	"time"

	"github.com/locksteward/locksteward"
)

// stall ends a sweep that makes no progress. A sweep that is long, or waits for its pace, is not stalled.
type stall struct {
	mu      sync.Mutex // guards what follows
	timer   *time.Timer
	timeout time.Duration
}

// begin calls cut once no server has answered for timeout; the time of an operator's pause does not count. The function
// that it returns ends that.
func (s *stall) begin(timeout time.Duration, paused func() *locksteward.Pause, cut func()) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timeout = timeout
	s.timer = time.AfterFunc(timeout, func() {
		if paused() != nil {
			s.progress()
			return
		}
		cut()
	})
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.timer.Stop()
		s.timer = nil
	}
}

// progress notes that a server was asked something or has answered.
func (s *stall) progress() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Reset(s.timeout)
	}
}
