package transport

import (
	"context"
	"time"
)

// deadlineContext bounds one round trip without a timer of its own: the client
// gives the deadline to its connections.
type deadlineContext struct {
	context.Context
	deadline time.Time
}

// WithDeadline is context.WithDeadline for one round trip, without a timer: Done does not
// close at the deadline, but Err reports it.
func WithDeadline(ctx context.Context, deadline time.Time) context.Context {
	return &deadlineContext{ctx, deadline}
}

// Deadline returns the earlier one of the parent's deadline and its own.
func (c *deadlineContext) Deadline() (time.Time, bool) {
	if d, ok := c.Context.Deadline(); ok && d.Before(c.deadline) {
		return d, true
	}
	return c.deadline, true
}

// Err is also context.DeadlineExceeded once the deadline has passed.
func (c *deadlineContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	if !time.Now().Before(c.deadline) {
		return context.DeadlineExceeded
	}
	return nil
}
