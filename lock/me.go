package lock

import (
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/locksteward/locksteward/lock/record"
)

// holderInfo makes the metadata that the client writes beside each lock.
type holderInfo struct {
	c *Client

	last  atomic.Pointer[leaseInfo]
	mu    sync.RWMutex
	infos map[Lease]*leaseInfo // by lease without its trace
}

// leaseInfo is the part of the metadata that is equal for equal leases.
type leaseInfo struct {
	lease Lease // without its trace
	json  string
}

// maxLeaseInfos is how many are kept.
const maxLeaseInfos = 256

// appendTail appends the metadata of r with its acquisition id as scripts take it, from
// its member "id" on.
func (m *holderInfo) appendTail(b []byte, r *request, id []byte) []byte {
	if r.session == nil && r.lease.Trace == "" {
		b = append(append(append(b, `"id":"`...), id...), `",`...)
		return append(b, m.ofLease(&r.lease)...)
	}
	meta := m.meta(&r.lease)
	meta.ID, meta.Trace = string(id), r.lease.Trace
	if r.session != nil {
		meta.Session, meta.Holding = r.session.id, r.session.holding(m.c, r.key)
	}
	return append(b, meta.Tail()...)
}

func (m *holderInfo) meta(lease *Lease) *record.Meta {
	meta := &record.Meta{
		V:          record.Version,
		Instance:   m.c.instance,
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
	return meta
}

func (m *holderInfo) ofLease(lease *Lease) string {
	key := *lease
	key.Trace = ""
	if last := m.last.Load(); last != nil && last.lease == key {
		return last.json
	}
	m.mu.RLock()
	info := m.infos[key]
	m.mu.RUnlock()
	if info == nil {
		info = &leaseInfo{key, m.meta(lease).Tail()}
		m.mu.Lock()
		if m.infos == nil || len(m.infos) >= maxLeaseInfos {
			m.infos = map[Lease]*leaseInfo{} // leases that differ each time are not worth keeping
		}
		m.infos[key] = info
		m.mu.Unlock()
	}
	m.last.Store(info)
	return info.json
}

// appendWaiter appends the sixth argument of acquire.lua for an attempt that is sent
// after now, and returns where in it the nonce is. An empty proof is none.
func (c *Client) appendWaiter(b []byte, r *request, proof []byte, now instant) (text []byte, from, to int) {
	b = append(strconv.AppendInt(b, r.since, 10), ' ')
	from = len(b)
	if len(proof) == 0 {
		b = append(b, '-')
	} else {
		r.nonces++
		r.marked = now
		b = strconv.AppendInt(append(b, proof...), int64(r.nonces), 10)
	}
	to = len(b)
	b = append(b, ' ')
	if r.session != nil {
		b = append(b, r.session.id...)
	} else {
		b = append(b, '-')
	}
	return append(append(b, ' '), c.instance...), from, to
}
