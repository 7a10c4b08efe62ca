package redis

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/lock/record"
)

// rereadTogether reads lock and metadata again, together, wherever the two do not fit:
// they were read a moment apart, and a release or an acquire in between looks
// like a loss.
//
// It reads metadata, lock, metadata. Acquire and release write both keys in one
// step, and an id is used once; so if both reads of the metadata show the same
// id, that metadata was there all the time, and a lock in the middle without
// that id was truly lost.
func (r *reader) rereadTogether(ctx context.Context, readings []keyReading) error {
	var open []*keyReading
	for i := range readings {
		if s := &readings[i]; s.unsettled() {
			open = append(open, s)
		}
	}
	if len(open) == 0 {
		return nil
	}
	type sandwich struct {
		before *redis.StringCmd
		kind   *redis.StatusCmd
		after  *redis.StringCmd
	}
	q := newQuestions(r, len(open))
	reads := make([]sandwich, len(open))
	for i, s := range open {
		prefix := s.meta.prefix
		if prefix == "" {
			prefix = r.prefixes[0]
		}
		name := record.Companion(prefix, record.KindHold, s.key)
		s.meta.prefix = prefix
		reads[i] = sandwich{
			before: metaCmd(ctx, name),
			kind:   typeCmd(ctx, s.key),
			after:  metaCmd(ctx, name),
		}
		q.cmds = append(q.cmds, reads[i].before, reads[i].kind)
		// A lock of ours is a string; another type answers WRONGTYPE, which only
		// happens to a lock that somebody overwrote.
		lock := keyReading{subject: s.subject}
		lock.sample.Type = "string"
		q.value(ctx, i, &lock)
		q.cmds = append(q.cmds, reads[i].after)
	}
	if err := r.exec(ctx, q.cmds); err != nil {
		return fmt.Errorf("read lock with metadata: %w", err)
	}
	for i, s := range open {
		read := reads[i]
		usable := true
		for _, cmd := range []redis.Cmder{read.before, read.kind, read.after} {
			ok, err := r.usable(cmd.Err())
			if err != nil {
				return fmt.Errorf("read lock with metadata: %w", err)
			}
			usable = usable && ok
		}
		if !usable {
			// What stands under the metadata's name is no string, or not ours to
			// read: the lock counts without it.
			s.meta = metadata{}
			continue
		}
		s.at = q.at.Val()
		s.meta.take(read.before.Val())
		if !s.meta.small {
			continue // too large by now: it proves nothing
		}
		var after metadata
		after.take(read.after.Val())
		if err := s.judgeTogether(q, i, read.kind.Val(), after.id()); err != nil {
			return err
		}
	}
	return nil
}

// unsettled says that value and metadata do not fit, or that one of them is
// missing.
func (s *keyReading) unsettled() bool {
	switch {
	case s.meta.there && !s.meta.small:
		return false // never read: it proves nothing
	case s.as == gone:
		return s.meta.record != nil
	case s.as != there:
		return false
	case s.id() != "":
		return s.meta.record == nil || s.meta.record.ID != s.id()
	default:
		return s.meta.record != nil
	}
}

// judgeTogether says what a sandwich of reads shows: the same hold in both, a
// loss, or, when the metadata changed meanwhile, nothing.
func (s *keyReading) judgeTogether(q *questions, i int, kind, idAfter string) error {
	s.sample.Type = kind
	s.as = there
	switch kind {
	case "none":
		s.as = gone
	case "string":
		if err := q.takeValue(i, s); err != nil {
			return err
		}
	}
	if s.as == unread {
		return nil
	}
	m := s.meta.record
	if m == nil || m.ID == "" {
		if idAfter != "" {
			s.as = unread // acquired in this very moment
		}
		return nil
	}
	holds := s.as == there && s.id() == m.ID
	switch {
	case holds:
	case idAfter == m.ID:
		s.lost = true
	default:
		s.as = unread
	}
	return nil
}

// id returns the acquisition id, "" for none.
func (m *metadata) id() string {
	if m.record == nil {
		return ""
	}
	return m.record.ID
}
