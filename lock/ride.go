package lock

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// ride is one request that shares a round trip with others. All but cmd and done
// belongs to the lane's mutex until done has the outcome.
type ride struct {
	cmd        *redis.Cmd
	deadline   time.Time
	urgent     bool       // it goes before those that are not
	done       chan error // takes one outcome
	prev, next *ride
	sent       bool // it may have been executed
	over       bool // done has the outcome
	back       bool // the reply, or its error, is in cmd
}

// resting are rides that are over and that nobody knows any more.
var resting = sync.Pool{New: func() any { return &ride{done: make(chan error, 1)} }}

func newRide(cmd *redis.Cmd, deadline time.Time, urgent bool) *ride {
	r := resting.Get().(*ride)
	r.cmd, r.deadline, r.urgent = cmd, deadline, urgent
	return r
}

// reuse must only be called by who has the outcome, and if the reply is back: a
// ride that was given up is still in the hands of its driver.
func (r *ride) reuse() {
	*r = ride{done: r.done}
	resting.Put(r)
}

// rides are those of a lane that are not over, in the order in which they are sent:
// urgent ones first, and otherwise as they came.
type rides struct {
	first, last *ride
	unsent      *ride // the first one not sent, nil for none
	patient     *ride // the first one not sent that is not urgent, nil for none
	waiting     int   // those not sent
}

func (q *rides) add(r *ride) {
	before := q.patient
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
	if !r.urgent && q.patient == nil {
		q.patient = r
	}
	q.waiting++
}

// take appends the next ones to be sent to list, until that has n.
func (q *rides) take(list []*ride, n int) []*ride {
	for q.unsent != nil && len(list) < n {
		r := q.unsent
		r.sent = true
		list = append(list, r)
		q.unsent = r.next
		if q.patient == r {
			q.patient = r.next
		}
		q.waiting--
	}
	return list
}

// end tells r its outcome, unless it has one: that the reply is back, or err.
func (q *rides) end(r *ride, back bool, err error) {
	if r.over {
		return
	}
	r.over, r.back = true, back
	if !r.sent {
		q.waiting--
	}
	if q.unsent == r {
		q.unsent = r.next
	}
	if q.patient == r {
		q.patient = r.next
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
func (q *rides) expire(now time.Time) (next time.Time) {
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
