package transport

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// pendingRequest is one request that waits for a round trip or is in one. All but cmd and
// done is guarded by the mutex of its queue until done has the outcome.
type pendingRequest struct {
	cmd        *redis.Cmd
	deadline   time.Time
	urgent     bool       // it goes before those that are not
	done       chan error // takes one outcome
	prev, next *pendingRequest
	sent       bool // it may have been executed
	over       bool // done has the outcome
	answered   bool // the reply, or its error, is in cmd
}

// spare are requests that are over and that nobody knows any more.
var spare = sync.Pool{New: func() any { return &pendingRequest{done: make(chan error, 1)} }}

func newPending(cmd *redis.Cmd, deadline time.Time, urgent bool) *pendingRequest {
	r := spare.Get().(*pendingRequest)
	r.cmd, r.deadline, r.urgent = cmd, deadline, urgent
	return r
}

// reuse must only be called by who has the outcome, and if the reply is answered: a
// request that was given up is still in the hands of its flushLoop.
func (r *pendingRequest) reuse() {
	*r = pendingRequest{done: r.done}
	spare.Put(r)
}

// pendingRequests are those of a queue that are not over, in the order in which they are
// sent: urgent ones first, and otherwise as they came.
type pendingRequests struct {
	first, last *pendingRequest
	unsent      *pendingRequest // the first one not sent, nil for none
	regular     *pendingRequest // the first one not sent that is not urgent, nil for none
	unsentCount int             // those not sent
}

func (q *pendingRequests) add(r *pendingRequest) {
	before := q.regular
	if !r.urgent {
		before = nil
	}
	r.prev, r.next = q.last, before
	if before != nil {
		r.prev, before.prev = before.prev, r
	} else {
		q.last = r
	}
	if r.prev == nil {
		q.first = r
	} else {
		r.prev.next = r
	}
	if q.unsent == before {
		q.unsent = r
	}
	if !r.urgent && q.regular == nil {
		q.regular = r
	}
	q.unsentCount++
}

// take appends the next ones to be sent to list, until that has n.
func (q *pendingRequests) take(list []*pendingRequest, n int) []*pendingRequest {
	for q.unsent != nil && len(list) < n {
		r := q.unsent
		r.sent = true
		list = append(list, r)
		q.unsent = r.next
		if q.regular == r {
			q.regular = r.next
		}
		q.unsentCount--
	}
	return list
}

// end tells r its outcome, unless it has one: that the reply is back, or err.
func (q *pendingRequests) end(r *pendingRequest, answered bool, err error) {
	if r.over {
		return
	}
	r.over, r.answered = true, answered
	if !r.sent {
		q.unsentCount--
	}
	if q.unsent == r {
		q.unsent = r.next
	}
	if q.regular == r {
		q.regular = r.next
	}
	if r.prev == nil {
		q.first = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next == nil {
		q.last = r.prev
	} else {
		r.next.prev = r.prev
	}
	r.done <- err
}

// expire ends those whose deadline has come, and returns the next deadline; zero
// for none.
func (q *pendingRequests) expire(now time.Time) (next time.Time) {
	for r := q.first; r != nil; r = r.next {
		if !now.Before(r.deadline) {
			// It keeps its neighbour, which is in the list still.
			q.end(r, false, context.DeadlineExceeded)
		} else if next.IsZero() || r.deadline.Before(next) {
			next = r.deadline
		}
	}
	return next
}
