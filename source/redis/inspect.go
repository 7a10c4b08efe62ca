package redis

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/source/redis/formats"
)

// inspect looks at up to subjectsPerLook keys. An error means that none was
// read; keys that could not be read one by one come back as unread.
func (r *reader) inspect(ctx context.Context, subjects []subject) ([]keyReading, error) {
	readings, err := r.readOnce(ctx, subjects)
	if err != nil {
		return nil, err
	}
	var again []subject
	var at []int
	for i := range readings {
		if readings[i].as == retyped {
			s := readings[i].subject
			s.typ = ""
			again, at = append(again, s), append(at, i)
		}
	}
	if len(again) == 0 {
		return readings, nil
	}
	second, err := r.readOnce(ctx, again)
	if err != nil {
		return nil, err
	}
	for j, i := range at {
		if second[j].as == retyped {
			second[j].as = unread
		}
		readings[i] = second[j]
	}
	return readings, nil
}

func (r *reader) readOnce(ctx context.Context, subjects []subject) ([]keyReading, error) {
	readings := make([]keyReading, len(subjects))
	for i, s := range subjects {
		readings[i] = keyReading{subject: s, idle: unknownIdle}
		readings[i].sample.Key = s.key
	}
	steps := []func(context.Context, []keyReading) error{r.types, r.values, r.rest, r.auxiliary, r.rereadTogether}
	for _, step := range steps {
		if err := step(ctx, readings); err != nil {
			return nil, err
		}
	}
	return readings, nil
}

// idleError is by how much OBJECT IDLETIME may say too much: it counts the seconds
// of the clock that began between two moments, and that clock is read once in each
// tick of hz, which is at least 1.
const idleError = 2 * time.Second

// types asks for the types that are not known, and for the idle time before
// anything touches the key.
func (r *reader) types(ctx context.Context, readings []keyReading) error {
	askIdle := !r.noIdle && r.caps.has("object|idletime")
	kinds := make([]*redis.StatusCmd, len(readings))
	idles := make([]*redis.DurationCmd, len(readings))
	now := timeCmd(ctx) // first: it must not be later than any of the looks
	cmds := []redis.Cmder{now}
	for i := range readings {
		if askIdle && !readings[i].known {
			idles[i] = idleCmd(ctx, readings[i].key)
			cmds = append(cmds, idles[i])
		}
		if readings[i].typ == "" {
			kinds[i] = typeCmd(ctx, readings[i].key)
			cmds = append(cmds, kinds[i])
		}
	}
	if len(cmds) > 1 {
		if err := r.exec(ctx, cmds); err != nil {
			return fmt.Errorf("read types: %w", err)
		}
	}
	for i := range readings {
		s := &readings[i]
		if idles[i] != nil {
			switch judge(idles[i].Err()) {
			case fine:
				if idles[i].Err() == nil {
					s.idle = max(0, idles[i].Val()-idleError)
					r.caps.allow("object|idletime")
				}
			case without:
				r.caps.refuse("object|idletime", idles[i].Err())
			}
		}
		if kinds[i] == nil {
			// The commands of that type tell whether it still is.
			s.sample.Type, s.as = s.typ, there
			continue
		}
		ok, err := r.usable(kinds[i].Err())
		switch {
		case err != nil:
			return fmt.Errorf("read types: %w", err)
		case ok:
			s.sample.Type = kinds[i].Val()
			s.as = there
			if s.sample.Type == "none" {
				s.as, s.at = gone, now.Val()
			}
		}
	}
	return nil
}

// sizes are the commands that tell the number of members of each type; others'
// are not asked for.
var sizes = map[string]string{"hash": "hlen", "zset": "zcard", "set": "scard", "list": "llen"}

// values asks for expiry, size and, of strings, the first bytes, all close
// together, and for the size of metadata that is known to be there.
func (r *reader) values(ctx context.Context, readings []keyReading) error {
	q := newQuestions(r, len(readings))
	for i := range readings {
		s := &readings[i]
		if s.as == there {
			q.value(ctx, i, s)
		}
		for _, prefix := range s.prefixes(r.prefixes) {
			q.meta(ctx, i, s.key, prefix)
		}
	}
	if len(q.cmds) == 1 {
		return nil // nothing but TIME
	}
	if err := r.exec(ctx, q.cmds); err != nil {
		return fmt.Errorf("read values: %w", err)
	}
	if err := q.expireRefused(); err != nil {
		r.caps.refuse("pexpiretime", err)
		return r.values(ctx, readings) // by PTTL
	}
	for i := range readings {
		s := &readings[i]
		if s.as != gone { // else it was gone before, and may be there by now
			s.at = q.at.Val()
		}
		if err := q.takeValue(i, s); err != nil {
			return err
		}
		if s.sample.Type == "string" && isSharedInteger(s.sample.Value) {
			s.idle = min(s.idle, 0) // at least none, as far as can be known
		}
		if err := q.takeMeta(i, s); err != nil {
			return err
		}
	}
	return nil
}

// rest reads the members of what is within the bounds and the length of strings
// of which only the beginning was read, and looks for metadata beside values of
// ours where none is known yet.
func (r *reader) rest(ctx context.Context, readings []keyReading) error {
	q := newQuestions(r, len(readings))
	for i := range readings {
		s := &readings[i]
		if s.as == there && s.sample.Type == "hash" && !s.sample.TooLarge {
			q.fields[i] = fieldsCmd(ctx, s.key)
			q.cmds = append(q.cmds, q.fields[i])
		}
		if s.as == there && !s.sample.TooLarge {
			if q.list[i] = membersCmd(ctx, s.sample.Type, s.key); q.list[i] != nil {
				q.cmds = append(q.cmds, q.list[i])
			}
		}
		if s.as == there && s.sample.Type == "string" && s.sample.TooLarge {
			q.size[i] = sizeCmd(ctx, "strlen", s.key)
			q.cmds = append(q.cmds, q.size[i])
		}
		if s.as == there && s.id() != "" && s.prefixes(r.prefixes) == nil {
			for _, prefix := range r.prefixes {
				q.meta(ctx, i, s.key, prefix)
			}
		}
	}
	if len(q.cmds) == 1 {
		return nil
	}
	if err := r.exec(ctx, q.cmds); err != nil {
		return fmt.Errorf("read members: %w", err)
	}
	for i := range readings {
		s := &readings[i]
		if cmd := q.list[i]; cmd != nil {
			ok, err := r.usable(cmd.Err())
			if err != nil {
				return fmt.Errorf("read members: %w", err)
			}
			members := membersOf(cmd, s.sample.Type)
			ok = ok && !slices.ContainsFunc(members, func(m formats.Member) bool { return r.tooLong(m.Name) })
			s.takeMembers(ok, members)
		}
		if cmd := q.fields[i]; cmd != nil {
			ok, err := r.usable(cmd.Err())
			switch {
			case err != nil:
				return fmt.Errorf("read members: %w", err)
			case !ok, r.anyTooLong(cmd.Val()):
				s.as = unread
			case len(cmd.Val()) == 0:
				s.as = gone
			default:
				s.sample.Size = int64(len(cmd.Val()))
				if s.sample.TooLarge = !within(cmd.Val(), maxHash); !s.sample.TooLarge {
					s.sample.Fields = cmd.Val()
				}
			}
		}
		if cmd := q.size[i]; cmd != nil {
			ok, err := r.usable(cmd.Err())
			switch {
			case err != nil:
				return fmt.Errorf("read lengths: %w", err)
			case !ok:
				s.as = unread
			default:
				s.sample.Size = cmd.Val()
				s.sample.TooLarge = cmd.Val() > maxString
			}
		}
		if err := q.takeMeta(i, s); err != nil {
			return err
		}
	}
	return nil
}

// takeMembers puts the members into the reading, if they could be read. There may
// be more of them by now than were counted.
func (s *keyReading) takeMembers(read bool, members []formats.Member) {
	switch {
	case !read:
		s.as = unread
	case len(members) == 0:
		s.as = gone
	case len(members) > maxMembers || weightOf(members) > maxHash:
		s.sample.TooLarge = true
	default:
		s.sample.Members, s.sample.Size = members, int64(len(members))
	}
}
