package scanner

import (
	"context"
	"fmt"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

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
	batches, err := s.source.Read(ctx, []string{key}, false)
	if err != nil {
		return locksteward.Lock{}, fmt.Errorf(`read "%s": %w`, name, err)
	}
	b := batches[0]
	seen := b.Readings[0]
	if seen.State == source.Unread {
		return locksteward.Lock{}, fmt.Errorf(`read "%s": it changed while it was read or may not be read; try again`, name)
	}
	update, changes := s.apply(b, true)
	s.table.addPending(update.Endings)
	switch {
	case changes[0].lock != nil:
		return *changes[0].lock, nil
	case seen.State == source.NotLock && seen.Lock != nil:
		return locksteward.Lock{Observation: *seen.Lock}, nil
	default:
		return locksteward.Lock{}, fmt.Errorf(`read "%s": %w`, name, locksteward.ErrNotFound)
	}
}

// Recheck reads locks again, each on the server that has it, and returns the locks that
// are there, their waiters, the holds that ended, and losses. A lock that could not be read
// is in none of these; the error says why, and the rest is valid.
func (s *Scanner) Recheck(ctx context.Context, locks []locksteward.Lock) (locksteward.Update, error) {
	return s.recheck(ctx, locks, false)
}

// RecheckPaced is [Scanner.Recheck] that waits for the pace of the servers, as a sweep does.
func (s *Scanner) RecheckPaced(ctx context.Context, locks []locksteward.Lock) (locksteward.Update, error) {
	return s.recheck(ctx, locks, true)
}

func (s *Scanner) recheck(ctx context.Context, locks []locksteward.Lock, paced bool) (locksteward.Update, error) {
	all := locksteward.Update{Target: s.target.Name, Started: s.clock()}
	if len(locks) == 0 {
		all.At = all.Started
		return all, nil
	}
	names := make([]string, len(locks))
	for i := range locks {
		names[i] = locks[i].Key
	}
	batches, err := s.source.Read(ctx, names, paced)
	for _, b := range batches {
		update, _ := s.apply(b, false)
		all.Locks = append(all.Locks, update.Locks...)
		all.Waiters = append(all.Waiters, update.Waiters...)
		all.Endings = append(all.Endings, update.Endings...)
		all.Losses = append(all.Losses, update.Losses...)
		all.At = maxTime(all.At, update.At)
	}
	all.Duration = s.clock().Sub(all.Started)
	if all.At.IsZero() {
		all.At = all.Started
	}
	sortLocks(all.Locks)
	sortWaiters(all.Waiters)
	sortLosses(all.Losses)
	if err != nil {
		err = fmt.Errorf("read %d locks again: %w", len(locks), err)
	}
	return all, err
}
