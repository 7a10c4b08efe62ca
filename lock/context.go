package lock

import "context"

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
