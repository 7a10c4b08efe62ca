package alert

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
)

// groupBox is the part of a box in which changes wait.
type groupBox struct {
	seq     int64
	pending []pendingEvent
	groups  map[[2]string]*groupRow    // by receiver and group
	knows   map[[2]string]pendingEvent // by receiver and fingerprint
}

type pendingEvent struct {
	locksteward.PendingEvent
	locksteward.Recipient
}

type groupRow struct {
	due  time.Time // zero: not
	last time.Time
}

func (b *box) change(changes ...locksteward.FindingEvent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range changes {
		for _, a := range c.To {
			b.seq++
			c.To, c.Seq = nil, b.seq
			p := pendingEvent{locksteward.PendingEvent{FindingEvent: c}, a}
			if a.Direct {
				b.know(p)
				b.pending = slices.DeleteFunc(b.pending, func(old pendingEvent) bool {
					return old.Receiver == a.Receiver && old.Held != "" && old.Finding.Fingerprint() == c.Finding.Fingerprint()
				})
				continue
			}
			b.pending = append(b.pending, p)
			g := b.group(a.Receiver, a.Group)
			due := time.Now().Add(a.Wait)
			if after := g.last.Add(a.Interval); !g.last.IsZero() && after.After(due) {
				due = after
			}
			if g.due.IsZero() || due.Before(g.due) {
				g.due = due
			}
		}
	}
}

func (b *box) group(receiver, group string) *groupRow {
	if b.groups == nil {
		b.groups = map[[2]string]*groupRow{}
	}
	at := [2]string{receiver, group}
	if b.groups[at] == nil {
		b.groups[at] = &groupRow{}
	}
	return b.groups[at]
}

func (b *box) know(p pendingEvent) {
	if b.knows == nil {
		b.knows = map[[2]string]pendingEvent{}
	}
	at := [2]string{p.Receiver, p.Finding.Fingerprint()}
	if p.Finding.Status == locksteward.StatusResolved {
		delete(b.knows, at)
	} else {
		b.knows[at] = p
	}
}

// urgency is that of a group: of the most urgent of what waits in it.
func (b *box) urgency(receiver, group string) int {
	most := 0
	for _, p := range b.pending {
		if p.Receiver == receiver && p.Group == group {
			most = max(most, p.Urgency)
		}
	}
	return most
}

func (b *box) NextGroup(_ context.Context, receiver, behind string) (time.Duration, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var next time.Time
	above := b.above(receiver, behind)
	for at, g := range b.groups {
		if at[0] == receiver && b.urgency(receiver, at[1]) > above && !g.due.IsZero() && (next.IsZero() || g.due.Before(next)) {
			next = g.due
		}
	}
	return max(0, time.Until(next)), !next.IsZero(), b.away
}

// hurry makes a group due within so long, as the store's HurryGroup does.
func (b *box) hurry(group string, within time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for at, g := range b.groups {
		if due := time.Now().Add(within); at[1] == group && g.due.After(due) {
			g.due = due
		}
	}
}

func (b *box) HasPending(_ context.Context, receiver string) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.pending, func(p pendingEvent) bool { return p.Receiver == receiver && p.Held == "" }), b.away
}

func (b *box) Flush(_ context.Context, receiver, behind string, groups, changes int, compose func([]locksteward.DueGroup) ([]locksteward.FlushedGroup, []locksteward.Notification)) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.away != nil {
		return 0, b.away
	}
	var due []locksteward.DueGroup
	above := b.above(receiver, behind)
	for at, g := range b.groups {
		if at[0] != receiver || b.urgency(receiver, at[1]) <= above || g.due.IsZero() || g.due.After(time.Now()) {
			continue
		}
		d := locksteward.DueGroup{Group: at[1], LastAt: g.last, Now: time.Now()}
		for _, p := range b.pending {
			if p.Receiver != receiver || p.Group != at[1] || p.Held != "" && !b.follows(p) {
				continue
			}
			if len(d.Waiting) == changes {
				d.More = true
				break
			}
			_, p.Known = b.knows[[2]string{receiver, p.Finding.Fingerprint()}]
			d.Waiting = append(d.Waiting, p.PendingEvent)
		}
		for k, p := range b.knows {
			if k[0] == receiver && p.Group == at[1] {
				d.Firing++
				if len(d.Waiting) == 0 && len(d.FiringEvents) < changes {
					d.FiringEvents = append(d.FiringEvents, p.FindingEvent)
				}
			}
		}
		due = append(due, d)
	}
	slices.SortFunc(due, func(x, y locksteward.DueGroup) int {
		return cmp.Or(cmp.Compare(b.urgency(receiver, y.Group), b.urgency(receiver, x.Group)), cmp.Compare(x.Group, y.Group))
	})
	due = due[:min(len(due), groups)]
	flushed, messages := compose(due)
	for _, f := range flushed {
		g := b.group(receiver, f.Group)
		for _, h := range slices.Concat(f.Notified, f.Dropped) {
			n := slices.IndexFunc(b.pending, func(p pendingEvent) bool { return p.Seq == h })
			if slices.Contains(f.Notified, h) {
				b.know(b.pending[n])
			}
			b.pending = slices.Delete(b.pending, n, n+1)
		}
		fresh := false
		for i, p := range b.pending {
			if p.Receiver == receiver && p.Group == f.Group {
				if why, held := f.Held[p.Seq]; held {
					b.pending[i].Held = why
				} else if p.Held == "" {
					fresh = true
				}
			}
		}
		if f.Sent {
			g.last = time.Now()
		}
		switch {
		case fresh:
			g.due = time.Now()
		case f.Next < 0:
			g.due = time.Time{}
		default:
			g.due = time.Now().Add(f.Next)
		}
	}
	b.insert(messages...)
	return len(due), nil
}

func (b *box) Firing(_ context.Context, receiver, after string, limit int) ([]locksteward.FindingEvent, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []locksteward.FindingEvent
	for at, p := range b.knows {
		if at[0] == receiver && at[1] > after {
			out = append(out, p.FindingEvent)
		}
	}
	slices.SortFunc(out, func(x, y locksteward.FindingEvent) int {
		return cmp.Compare(x.Finding.Fingerprint(), y.Finding.Fingerprint())
	})
	return out[:min(len(out), limit)], b.away
}

func (b *box) DropReceiver(_ context.Context, receiver string) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := len(b.pending)
	b.pending = slices.DeleteFunc(b.pending, func(p pendingEvent) bool { return p.Receiver == receiver })
	for at := range b.groups {
		if at[0] == receiver {
			delete(b.groups, at)
		}
	}
	return int64(before - len(b.pending)), b.away
}

// follows says that something new waits about the finding of a change that is held
// back.
func (b *box) follows(held pendingEvent) bool {
	return slices.ContainsFunc(b.pending, func(p pendingEvent) bool {
		return p.Receiver == held.Receiver && p.Held == "" && p.Finding.Fingerprint() == held.Finding.Fingerprint()
	})
}

// wakeHeld makes all groups due in which something is held back; what ended meanwhile
// stays so until its end is looked at.
func (b *box) wakeHeld() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, p := range b.pending {
		if p.Held == "" {
			continue
		}
		b.group(p.Receiver, p.Group).due = time.Now()
		if !slices.ContainsFunc(b.pending[i:], func(later pendingEvent) bool {
			return later.Receiver == p.Receiver && later.Finding.Status == locksteward.StatusResolved && later.Finding.Fingerprint() == p.Finding.Fingerprint()
		}) {
			b.pending[i].Held = ""
		}
	}
}

// suppressions gathers what was not notified of, as "receiver reason" and "receiver
// omitted".
type suppressions struct{ counts }

func (c *suppressions) hooks() Hooks {
	hooks := c.counts.hooks()
	add := func(key string, n int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.n[key] += n
	}
	hooks.Suppressed = func(receiver, reason string, n int) { add(receiver+" "+reason, n) }
	hooks.Omitted = func(receiver string, n int) { add(receiver+" omitted", n) }
	return hooks
}
