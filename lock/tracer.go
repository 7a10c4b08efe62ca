package lock

import "context"

// Tracer makes spans, for OpenTelemetry or whatever else an application uses;
// docs/lock.md has one of a few lines. It is called when an operation begins:
// "acquire", which includes the waiting, or "release". traceparent is the W3C
// traceparent of the new span, which goes into the lock's metadata if
// Lease.Trace is empty; "" for none. end is called once. A Tracer must be safe
// for concurrent use.
type Tracer func(ctx context.Context, op, key, class string) (traceparent string, end func(SpanEnd))

// SpanEnd is how an operation ended.
type SpanEnd struct {
	ID        string // acquisition id, "" for none
	Fence     int64
	Contended bool // another had the lock when it looked first
	Err       error
}

// maxTrace is the longest traceparent that is kept: a tracer must not make an
// acquire fail.
const maxTrace = 128

// trace begins the span of an operation.
func (c *Client) trace(ctx context.Context, op, key string, lease *Lease) func(*hold, bool, error) {
	if c.opts.Tracer == nil {
		return func(*hold, bool, error) {}
	}
	traceparent, end := c.opts.Tracer(ctx, op, key, lease.Class)
	if lease.Trace == "" && len(traceparent) <= maxTrace {
		lease.Trace = traceparent
	}
	return func(h *hold, contended bool, err error) {
		e := SpanEnd{Contended: contended, Err: err}
		if h != nil {
			e.ID, e.Fence = h.id, h.fence
		}
		end(e)
	}
}
