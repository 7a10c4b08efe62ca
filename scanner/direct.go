package scanner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/connect"
	"github.com/locksteward/locksteward/lock/record"
)

// directReader reads for a person or a rule: at once, without waiting for the
// budget, in which it is booked all the same.
func (s *Scanner) directReader(m connect.Master) *reader {
	return &reader{
		client: m.Client, node: m.Addr, table: s.table, caps: s.caps, prefixes: s.prefixes,
		call: func(_ context.Context, _ int, pipeline func() error) error {
			began := time.Now()
			err := pipeline()
			s.book(m.Addr, time.Since(began))
			return err
		},
	}
}

// glance is what a direct read of one key came to.
type glance struct {
	sight *sight
	node  string
	lock  *locksteward.Lock // nil unless it is a lock or a candidate
	// waiters are those who wait for it, as far as they were read.
	waiters []locksteward.Waiter
	ended   *locksteward.Ending
	lost    []locksteward.Loss
}

// pacedReader reads as a sweep does: when the pace of the server allows.
func (s *Scanner) pacedReader(m connect.Master) *reader {
	server := s.server(m.Addr)
	r := s.directReader(m)
	r.call = func(ctx context.Context, n int, pipeline func() error) error {
		return s.paced(ctx, server, func() error {
			began := time.Now()
			err := pipeline()
			now := time.Now()
			server.Piped(now, n, now.Sub(began))
			return err
		})
	}
	return r
}

// glanceAt reads keys of one master, takes them into the table and returns what
// it saw. known locks that turn out to be gone stay in the table when keepGone
// is set.
func (s *Scanner) glanceAt(ctx context.Context, r *reader, keys []string, keepGone bool) ([]glance, error) {
	classes := s.classes.Load()
	subjects := make([]subject, len(keys))
	for i, key := range keys {
		subjects[i] = subject{key: key, match: classes.Classify(key), memory: s.table.remember(key)}
	}
	began := time.Now()
	sights, err := r.inspect(ctx, subjects)
	if err != nil {
		return nil, err
	}
	o := observer{target: s.target, digest: s.digest, placeholder: s.placeholder, texts: texts{}}
	glances := make([]glance, len(sights))
	for i := range sights {
		g := &glances[i]
		g.sight, g.node = &sights[i], r.node
		g.lost = lossesOf(&sights[i], s.target, r.node)
		s.settleGlance(ctx, r, &o, g, reading{key: g.sight.key, at: micros(g.sight.at), began: began, keep: keepGone})
	}
	return glances, nil
}

// settleGlance takes one look into the table, as read says, and notes in g what
// became of it.
func (s *Scanner) settleGlance(ctx context.Context, r *reader, o *observer, g *glance, read reading) {
	if g.sight.as == unread {
		return
	}
	t := s.table
	var kind shape
	if obs, ok := o.observe(g.sight, g.node); g.sight.as == there && ok {
		if obs.Kind == locksteward.KindCandidate {
			g.lock = &locksteward.Lock{Observation: obs}
		} else {
			var l look
			l, kind = pack(obs)
			s.joinDirect(ctx, r, g, &l)
			read.lock = &l
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if read.lock != nil {
		read.lock.kind = t.intern(kind)
	}
	now, ended := t.apply(read)
	if now != nil {
		g.lock = new(now.lock(s.target))
	}
	if ended != nil {
		end, _ := s.ending(ended, g.sight, g.node, g.lost)
		g.ended = &end
	}
}

// ending says how a hold ended that a look at node found to be over, with the losses
// that the look proves, and whether a flush may have taken it. The table is locked.
func (s *Scanner) ending(e *entry, seen *sight, node string, losses []locksteward.Loss) (end locksteward.Ending, flushed bool) {
	at := micros(seen.at)
	flushed = s.table.tookHold(e, at)
	s.table.endsAt(e, node, at, 0)
	if seen.as == there {
		return replacedBy(e, s.target, at), flushed
	}
	end = endingOf(e, s.target, seen.at, lossOf(e, losses), flushed || node != e.kind.node)
	if flushed && end.How == locksteward.EndedDeleted {
		end.By = s.table.flushed[e.kind.node].kind()
	}
	return end, flushed
}

// joinDirect reads what other keys tell of a lock: who waits for it, and the
// heartbeat of its holder. What cannot be read now stays unknown, which is no
// reason not to show the lock.
func (s *Scanner) joinDirect(ctx context.Context, r *reader, g *glance, l *look) {
	if g.sight.id() != "" {
		waiting := s.crowdAt(ctx, r, g.sight)
		l.waiters, g.waiters = int32(waiting[l.key].count), s.listed(waiting)
	}
	id := l.holderInstance()
	if id == "" {
		return
	}
	for _, key := range s.instanceKeys(id) {
		got := instanceRead{}
		if m, err := s.conn.MasterFor(ctx, key.key); err == nil {
			if list, err := s.directReader(m).instances(ctx, []instanceKey{key}); err == nil {
				got = list[0]
			}
		}
		switch {
		case got.instance != nil:
			l.instance = got.instance
			return
		case !got.read:
			l.instance = &locksteward.Instance{ID: id}
		}
	}
}

// instanceKeys returns where the heartbeat of a process may stand.
func (s *Scanner) instanceKeys(id string) []instanceKey {
	keys := make([]instanceKey, len(s.prefixes))
	for i, prefix := range s.prefixes {
		keys[i] = instanceKey{id: id, key: record.InstanceKey(prefix, id)}
	}
	return keys
}

// maxShownName bounds a key in an error, in characters: nobody reads more of it.
const maxShownName = 120

// shownName is a key for people, cut.
func shownName(key string) string {
	// No more of it than could be shown is looked at.
	text := []rune(locksteward.DisplayKey(key[:min(len(key), 4*maxShownName)]))
	if len(text) <= maxShownName && len(key) <= 4*maxShownName {
		return string(text)
	}
	return fmt.Sprintf("%s… (%d bytes)", string(text[:min(len(text), maxShownName)]), len(key))
}

// refresh is [Table.Refresh].
func (s *Scanner) refresh(ctx context.Context, key string) (locksteward.Lock, error) {
	name := shownName(key)
	m, err := s.conn.MasterFor(ctx, key)
	if err != nil {
		return locksteward.Lock{}, fmt.Errorf(`read "%s": %w`, name, err)
	}
	glances, err := s.glanceAt(ctx, s.directReader(m), []string{key}, true)
	if err != nil {
		return locksteward.Lock{}, fmt.Errorf(`read "%s": %w`, name, err)
	}
	g := glances[0]
	if g.ended != nil {
		s.table.mu.Lock()
		s.table.pending = append(s.table.pending, *g.ended)
		s.table.mu.Unlock()
	}
	switch {
	case g.sight.as == unread:
		return locksteward.Lock{}, fmt.Errorf(`read "%s": it changed while it was read or may not be read; try again`, name)
	case g.lock == nil:
		return locksteward.Lock{}, fmt.Errorf(`read "%s": %w`, name, locksteward.ErrNotFound)
	}
	return *g.lock, nil
}

// Recheck reads the keys of locks again, now, each on the master that owns it,
// and returns what it saw as a sweep without masters: Locks that are there, the
// Waiters for them, Endings of holds that are over, Losses. A key that could not be read is in
// neither; the error says why, and the rest is good all the same.
func (s *Scanner) Recheck(ctx context.Context, locks []locksteward.Lock) (locksteward.Sweep, error) {
	return s.recheck(ctx, locks, s.directReader)
}

// RecheckPaced is [Scanner.Recheck] that waits for the pace of the servers, as a sweep does.
func (s *Scanner) RecheckPaced(ctx context.Context, locks []locksteward.Lock) (locksteward.Sweep, error) {
	return s.recheck(ctx, locks, s.pacedReader)
}

func (s *Scanner) recheck(ctx context.Context, locks []locksteward.Lock, readerAt func(connect.Master) *reader) (locksteward.Sweep, error) {
	sweep := locksteward.Sweep{Target: s.target.Name, Started: s.clock()}
	if len(locks) == 0 {
		sweep.At = sweep.Started
		return sweep, nil
	}
	masters, err := s.conn.Masters(ctx)
	if err != nil {
		return sweep, fmt.Errorf("read %d locks again: %w", len(locks), err)
	}
	var errs []error
	for _, m := range masters {
		var keys []string
		for _, l := range locks {
			if m.Owns(l.Key) {
				keys = append(keys, l.Key)
			}
		}
		r := readerAt(m)
		for len(keys) > 0 {
			n := min(len(keys), subjectsPerLook)
			glances, err := s.glanceAt(ctx, r, keys[:n], false)
			keys = keys[n:]
			if err != nil {
				errs = append(errs, fmt.Errorf("read locks of %s again: %w", m.Addr, err))
				break
			}
			for _, g := range glances {
				collect(&sweep, g)
			}
		}
	}
	sweep.Duration = s.clock().Sub(sweep.Started)
	if sweep.At.IsZero() {
		sweep.At = sweep.Started
	}
	sortLocks(sweep.Locks)
	sortWaiters(sweep.Waiters)
	sortLosses(sweep.Losses)
	return sweep, errors.Join(errs...)
}

func collect(sweep *locksteward.Sweep, g glance) {
	if g.lock != nil && g.lock.Kind == locksteward.KindLock {
		sweep.Locks = append(sweep.Locks, *g.lock)
		sweep.Waiters = append(sweep.Waiters, g.waiters...)
	}
	if g.ended != nil {
		sweep.Endings = append(sweep.Endings, *g.ended)
	}
	sweep.Losses = append(sweep.Losses, g.lost...)
	sweep.At = maxTime(sweep.At, g.sight.at)
}
