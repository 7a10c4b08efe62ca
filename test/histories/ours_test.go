package histories_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/lock/record"
)

// ownKeys are the locks of our own format.
var ownKeys = []string{"lock:own:0", "lock:own:1", "lock:own:2", "lock:own:3", "lock:own:4", "lock:own:5", "own", "{own}:lock"}

// refreshEvery and waiterLife are how often lock/ writes the record of a waiter,
// and how long it is believed (docs/wire-format.md, section 7).
const (
	refreshEvery = time.Second
	waiterLife   = 3 * time.Second
)

// process is one that uses our library.
type process struct {
	id, slot, host string

	started     time.Time
	alive       bool
	beat        time.Time // last heartbeat
	written     bool      // and it was not deleted since
	next        time.Time // next heartbeat
	pausedUntil time.Time // it is frozen, or was, until then
	listens     bool      // it is subscribed to its channel
	sessions    int
}

// ownHold is what a hold of our own format has beside.
type ownHold struct {
	id      string
	process *process
	session string // "" where the application named none
	expect  time.Duration
	// holding are the locks that the session had when it took this one.
	holding []string
	// metaEnd is when the metadata expires.
	metaEnd  time.Time
	meta     record.Meta
	renewals int64
	// found is the hold before this one whose loss this acquire found.
	found *loss
}

// wait is one call that waits for a lock of ours.
type wait struct {
	key, id, session string
	process          *process
	since            time.Time
	until            time.Time // as its record says
	on               bool      // it still waits
}

// loss is a hold of ours that ended without a release.
type loss struct {
	hold     *hold
	deadline time.Time
	metaEnd  time.Time
	heir     *hold // whose acquire found it; nil: the metadata is still that of the loss
}

func meta(key string) string { return record.Companion(record.DefaultPrefix, record.KindHold, key) }

func channel(p *process) string { return record.InstanceKey(record.DefaultPrefix, p.id) }

// begin starts a process. Its heartbeat comes with its first lock; here at once.
func (w *world) begin(slot, host string) *process {
	p := &process{id: fmt.Sprintf("p%d", len(w.processes)+1), slot: slot, host: host, started: w.now, alive: true, next: w.now}
	w.processes = append(w.processes, p)
	w.listen(p)
	pipe := w.db.Pipeline()
	p.pass(w.ctx, pipe, w.now)
	_, err := pipe.Exec(w.ctx)
	w.must(err)
	w.tell("process %s begins (slot %q, host %s)", p.id, slot, host)
	return p
}

func (w *world) listen(p *process) {
	if p.listens {
		return
	}
	p.listens = true
	w.must(w.listening.Subscribe(w.ctx, channel(p)))
	_, err := w.listening.Receive(w.ctx)
	w.must(err)
}

func (w *world) unlisten(p *process) {
	if !p.listens {
		return
	}
	p.listens = false
	w.must(w.listening.Unsubscribe(w.ctx, channel(p)))
	_, err := w.listening.Receive(w.ctx)
	w.must(err)
}

// pass writes the heartbeats until a moment.
func (p *process) pass(ctx context.Context, pipe redis.Pipeliner, to time.Time) {
	if !p.alive {
		return
	}
	if p.pausedUntil.After(p.next) {
		p.next = p.pausedUntil
	}
	if p.next.After(to) {
		return
	}
	n := to.Sub(p.next) / record.Heartbeat
	p.beat, p.written = p.next.Add(n*record.Heartbeat), true
	p.next = p.beat.Add(record.Heartbeat)
	i := record.Instance{ID: p.id, App: "shop", Host: p.host, PID: 7, Started: p.started.UnixMilli(), Slot: p.slot}
	pipe.HSet(ctx, channel(p), i.Fields()...)
	pipe.PExpireAt(ctx, channel(p), p.beat.Add(record.HeartbeatTTL))
}

// heartbeat is the one that the server shows at now; false if there is none.
func (p *process) heartbeat(now time.Time) (time.Time, bool) {
	return p.beat, p.written && !now.After(p.beat.Add(record.HeartbeatTTL))
}

// acquire takes a free lock as our library does.
func (w *world) acquire(p *process, session, key string, lease, every, expect time.Duration) *hold {
	w.settle()
	id := fmt.Sprintf("%s-%d", p.id, w.rng.Uint32())
	h := &hold{
		shape: shape{key: key, typ: "string", value: record.Value(id, fmt.Sprint("secret", w.rng.Uint64()))},
		taken: w.now, renewed: w.now, touched: w.now, lease: lease, every: every, expires: w.now.Add(lease),
		own: &ownHold{id: id, process: p, session: session, expect: expect, metaEnd: w.now.Add(lease + record.Grace)},
	}
	m := record.Meta{
		V: record.Version, ID: id, Session: session, Instance: p.id, App: "shop", Host: p.host, PID: 7,
		Acquired: w.now.UnixMilli(), TTL: lease.Milliseconds(), RenewEvery: every.Milliseconds(), Expect: expect.Milliseconds(),
		Fence: w.now.UnixMicro(),
	}
	if session != "" {
		for _, k := range slices.Sorted(maps.Keys(w.holds)) {
			if o := w.holds[k].own; o != nil && o.session == session {
				m.Holding = append(m.Holding, k)
			}
		}
	}
	h.own.holding = m.Holding
	defer func() { h.own.meta = m }()
	if l := w.orphan(key); l != nil {
		l.heir, h.own.found = h, l
		m.Lost = &record.Lost{ID: l.hold.own.id, Holder: l.hold.own.process.id, Deadline: l.metaEnd.Add(-record.Grace).UnixMilli()}
	}
	pipe := w.db.Pipeline()
	pipe.Set(w.ctx, key, h.value, 0)
	pipe.PExpireAt(w.ctx, key, h.expires)
	pipe.Set(w.ctx, meta(key), m.Encode(), 0)
	pipe.PExpireAt(w.ctx, meta(key), h.own.metaEnd)
	_, err := pipe.Exec(w.ctx)
	w.must(err)
	w.holds[key] = h
	w.tell("acquire %s, renewed every %s, expect %s", h, every, expect)
	return h
}

// renew writes what renewals write into the metadata.
func (o *ownHold) renew(ctx context.Context, pipe redis.Pipeliner, h *hold, n int64) {
	o.renewals += n
	o.metaEnd = h.expires.Add(record.Grace)
	m := o.meta
	m.Seq, m.Renewals, m.Renewed = o.renewals, o.renewals, h.renewed.UnixMilli()
	pipe.Set(ctx, meta(h.key), m.Encode(), 0)
	pipe.PExpireAt(ctx, meta(h.key), o.metaEnd)
}

// claimed says that the metadata is there, which says who holds.
func (o *ownHold) claimed(now time.Time) bool { return o != nil && !now.After(o.metaEnd) }

// thread is the session as wait/cycle knows it: a hold without one is one of its
// own.
func (o *ownHold) thread() string { return cmp.Or(o.session, o.id) }

// lose notes that a hold of ours ends without a release. Without its metadata
// nothing reports it any more.
func (w *world) lose(h *hold) {
	if !h.own.claimed(w.now) {
		return
	}
	w.losses = append(w.losses, &loss{hold: h, deadline: h.renewed.Add(h.lease), metaEnd: h.own.metaEnd})
}

// orphan is the loss whose metadata stands at the key.
func (w *world) orphan(key string) *loss {
	for _, l := range w.losses {
		if l.hold.key == key && l.heir == nil && !w.now.After(l.metaEnd) {
			return l
		}
	}
	return nil
}

// shown says that the server still has evidence of the loss: the metadata itself,
// or that of the next hold, while it stands.
func (l *loss) shown(w *world) bool {
	if l.heir == nil {
		return !w.now.After(l.metaEnd)
	}
	return w.holds[l.hold.key] == l.heir && l.heir.own.claimed(w.now)
}

// passWaits writes the records of all who wait, as they stand at a moment.
func (w *world) passWaits(pipe redis.Pipeliner, to time.Time) {
	ends := map[string]time.Time{}
	for _, c := range w.waits {
		if p := c.process; c.on && p.alive && !p.pausedUntil.After(to) {
			last := c.since.Add(to.Sub(c.since) / refreshEvery * refreshEvery)
			if p.pausedUntil.After(last) {
				last = p.pausedUntil
			}
			c.until = last.Add(waiterLife)
			r := record.Waiter{Session: c.session, Instance: p.id, Since: c.since.UnixMicro(), Until: c.until.UnixMilli()}
			pipe.HSet(w.ctx, waiters(c.key), c.id, r.Encode())
		}
		if c.until.After(ends[c.key]) {
			ends[c.key] = c.until
		}
	}
	for _, key := range slices.Sorted(maps.Keys(ends)) {
		pipe.PExpireAt(w.ctx, waiters(key), ends[key].Add(record.WaiterGrace))
	}
}

func waiters(key string) string {
	return record.Companion(record.DefaultPrefix, record.KindWaiter, key)
}

// await lets a session wait for a lock.
func (w *world) await(p *process, session, key string) *wait {
	c := &wait{key: key, id: fmt.Sprintf("%s-w%d", p.id, w.rng.Uint32()), session: session, process: p, since: w.now, on: true}
	w.waits = append(w.waits, c)
	pipe := w.db.Pipeline()
	w.passWaits(pipe, w.now)
	_, err := pipe.Exec(w.ctx)
	w.must(err)
	w.tell("session %q of %s waits for %q", session, p.id, key)
	return c
}

// giveUp ends a wait as release.lua does.
func (w *world) giveUp(c *wait) {
	w.waits = slices.DeleteFunc(w.waits, func(o *wait) bool { return o == c })
	w.must(w.db.HDel(w.ctx, waiters(c.key), c.id).Err())
	w.tell("session %q gives up waiting for %q", c.session, c.key)
}

// kill ends a process at once: what it has is left to expire.
func (w *world) kill(p *process) {
	w.tell("process %s is killed", p.id)
	w.stop(p)
}

func (w *world) stop(p *process) {
	p.alive = false
	w.unlisten(p)
	for _, h := range w.holds {
		if h.own != nil && h.own.process == p {
			h.stuck = true
		}
	}
	for _, c := range w.waits {
		if c.process == p {
			c.on = false // its record stays until it is stale
		}
	}
}
