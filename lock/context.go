package lock

import (
	"context"
	"time"
)

// holdContext is a handle's context: a cancellable one that, when asked for its
// error, looks at the clocks first.
type holdContext struct {
	context.Context
	h *Handle
}

// derive makes c a child of parent. Done and Value are those of the inner
// context, so that children attach to it and context.Cause finds the cause.
func (c *holdContext) derive(parent context.Context, h *Handle) context.CancelCauseFunc {
	inner, cancel := context.WithCancelCause(parent)
	c.Context, c.h = inner, h
	return cancel
}

// Err ends the context if its lease is over and nobody noticed yet.
func (c *holdContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	c.h.hold.look()
	return c.Context.Err()
}

// String names the lock, never its token.
func (c *holdContext) String() string { return c.h.String() + ".Context" }

// GoString as [holdContext.String].
func (c *holdContext) GoString() string { return c.String() }

// deadlineContext bounds one round trip without a timer of its own: the client
// gives the deadline to its connections.
type deadlineContext struct {
	context.Context
	deadline time.Time
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
