package lock

import (
	"cmp"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/locksteward/locksteward/lock/record"
)

// me is what a client says about itself with each lock, ready to be sent.
type me struct {
	c       *Client
	waiters map[mode]any // of requests without a session, at their first attempt

	last    atomic.Pointer[described]
	mu      sync.RWMutex
	holders map[Lease]*described // what was described before, by lease without its trace
}

// described is a lease without its trace, and what the metadata says about it.
type described struct {
	lease  Lease
	packed *string
}

// maxHolders is how many descriptions are kept.
const maxHolders = 256

func newMe(c *Client) *me {
	m := &me{c: c, holders: map[Lease]*described{}}
	m.waiters = map[mode]any{}
	for _, way := range []mode{modeTry, modeWait, modeQueue} {
		m.waiters[way] = m.waiterText(&request{mode: way})
	}
	return m
}

// waiter returns the waiter argument of a request without a session.
func (m *me) waiter(way mode) any { return m.waiters[way] }

// waiterText is the fifth argument of acquire.lua.
func (m *me) waiterText(r *request) string {
	session := ""
	if r.session != nil {
		session = r.session.id
	}
	b := make([]byte, 0, 160)
	b = append(b, r.mode...)
	for _, n := range [...]int64{r.mode.life(m.c.opts).Milliseconds(), r.since, record.Turn.Milliseconds()} {
		b = append(b, ' ')
		b = strconv.AppendInt(b, n, 10)
	}
	b = append(b, ' ')
	b = append(b, cmp.Or(r.mark, "-")...)
	b = append(b, ' ')
	return string(append(b, record.Waiter{Session: session, Instance: m.c.instance}.Who()...))
}

// describe appends what the metadata says about holder and lease: in one
// argument, and if that cannot be, in fields behind it.
func (m *me) describe(args []any, lease *Lease) []any {
	key := *lease
	key.Trace = ""
	if last := m.last.Load(); last != nil && last.lease == key {
		return append(args, last.packed)
	}
	m.mu.RLock()
	before := m.holders[key]
	m.mu.RUnlock()
	if before != nil {
		m.last.Store(before)
		return append(args, before.packed)
	}
	meta := record.Meta{
		V:          record.Version,
		App:        m.c.opts.App,
		Host:       m.c.opts.Host,
		PID:        m.c.pid,
		Class:      lease.Class,
		Purpose:    lease.Purpose,
		TTL:        lease.TTL.Milliseconds(),
		RenewEvery: lease.renewEvery(m.c.opts).Milliseconds(),
		Expect:     lease.Expect.Milliseconds(),
		MaxHold:    lease.MaxHold.Milliseconds(),
	}
	if m.c.opts.EndWithHeartbeat {
		meta.EndsWithHeartbeat = 1
	}
	text, ok := record.PackHolder(&meta)
	if !ok {
		return append(append(args, ""), meta.Fields()...)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.holders) >= maxHolders {
		// Leases that differ each time are not worth remembering.
		clear(m.holders)
	}
	m.holders[key] = &described{key, &text}
	return append(args, &text)
}
