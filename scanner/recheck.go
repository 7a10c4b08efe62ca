package scanner

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// readKeys reads keys of one master and applies the readings to the table. It returns the
// reading and the change of each key (empty if the key could not be read) and the update.
// Locks that are gone stay in the table if keepGone is set.
func (s *Scanner) readKeys(ctx context.Context, r *reader, keys []string, keepGone bool) ([]keyReading, []change, locksteward.Update, error) {
	classes := s.classes.Load()
	subjects := make([]subject, len(keys))
	for i, key := range keys {
		subjects[i] = subject{key: key, match: classes.Classify(key), memory: s.table.remember(key)}
	}
	began := time.Now()
	readings, err := r.inspect(ctx, subjects)
	if err != nil {
		return nil, nil, locksteward.Update{}, err
	}
	o := observer{target: s.target, digest: s.digest, placeholder: s.placeholder, texts: texts{}}
	var sure []*keyReading
	for i := range readings {
		seen := &readings[i]
		if seen.as == unread {
			continue
		}
		if o.complete(seen, r.node); seen.lock != nil {
			s.joinDirect(ctx, r, seen)
		}
		sure = append(sure, seen)
	}
	update, applied := s.applyReadings(r.node, began, sure, keepGone)
	changes := make([]change, len(readings))
	for i := range readings {
		if readings[i].as == unread {
			continue
		}
		changes[i], applied = applied[0], applied[1:]
		if changes[i].lock != nil {
			update.Waiters = append(update.Waiters, readings[i].waiters...)
		}
	}
	return readings, changes, update, nil
}

// joinDirect reads the waiters of a lock and the heartbeat of its holder. What cannot be
// read stays unknown; the lock is shown all the same.
func (s *Scanner) joinDirect(ctx context.Context, r *reader, seen *keyReading) {
	l := seen.lock
	if seen.id() != "" {
		waiting := s.waitersAt(ctx, r, seen)
		l.waiters, seen.waiters = int32(waiting[l.key].count), s.listed(waiting)
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
	readings, changes, update, err := s.readKeys(ctx, s.directReader(m), []string{key}, true)
	if err != nil {
		return locksteward.Lock{}, fmt.Errorf(`read "%s": %w`, name, err)
	}
	s.table.addPending(update.Endings)
	switch seen := &readings[0]; {
	case seen.as == unread:
		return locksteward.Lock{}, fmt.Errorf(`read "%s": it changed while it was read or may not be read; try again`, name)
	case changes[0].lock != nil:
		return *changes[0].lock, nil
	case seen.candidate != nil:
		return locksteward.Lock{Observation: *seen.candidate}, nil
	default:
		return locksteward.Lock{}, fmt.Errorf(`read "%s": %w`, name, locksteward.ErrNotFound)
	}
}

// Recheck reads locks again at once, each on the master that owns its key, and returns the
// locks that are there, their waiters, the holds that ended, and losses. A key that could
// not be read is in none of these; the error says why, and the rest is valid.
func (s *Scanner) Recheck(ctx context.Context, locks []locksteward.Lock) (locksteward.Update, error) {
	return s.recheck(ctx, locks, s.directReader)
}

// RecheckPaced is [Scanner.Recheck] that waits for the pace of the servers, as a sweep does.
func (s *Scanner) RecheckPaced(ctx context.Context, locks []locksteward.Lock) (locksteward.Update, error) {
	return s.recheck(ctx, locks, s.pacedReader)
}

func (s *Scanner) recheck(ctx context.Context, locks []locksteward.Lock, readerAt func(connect.Master) *reader) (locksteward.Update, error) {
	all := locksteward.Update{Target: s.target.Name, Started: s.clock()}
	if len(locks) == 0 {
		all.At = all.Started
		return all, nil
	}
	masters, err := s.conn.Masters(ctx)
	if err != nil {
		return all, fmt.Errorf("read %d locks again: %w", len(locks), err)
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
		for chunk := range slices.Chunk(keys, subjectsPerLook) {
			_, _, update, err := s.readKeys(ctx, r, chunk, false)
			if err != nil {
				errs = append(errs, fmt.Errorf("read locks of %s again: %w", m.Addr, err))
				break
			}
			all.Locks = append(all.Locks, update.Locks...)
			all.Waiters = append(all.Waiters, update.Waiters...)
			all.Endings = append(all.Endings, update.Endings...)
			all.Losses = append(all.Losses, update.Losses...)
			all.At = maxTime(all.At, update.At)
		}
	}
	all.Duration = s.clock().Sub(all.Started)
	if all.At.IsZero() {
		all.At = all.Started
	}
	sortLocks(all.Locks)
	sortWaiters(all.Waiters)
	sortLosses(all.Losses)
	return all, errors.Join(errs...)
}
