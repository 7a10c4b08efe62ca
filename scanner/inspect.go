package scanner

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// subject is a key to be looked at.
type subject struct {
	key   string
	match class.Match
	// metaPrefix is the prefix under which metadata is known to stand beside the
	// key; "" if none is known.
	metaPrefix string
	memory
}

// memory is what the table knows of a key.
type memory struct {
	// known says that it has it: its idle time would only tell when we read it
	// last.
	known bool
	// ours says that it was a lock of ours at the last look: metadata is looked
	// for under every prefix, whatever the key holds now.
	ours bool
	// typ is its type at the last look, "" if not known.
	typ string
	// last is the last look, for texts that need not be kept twice; nil if not known.
	last *entry
}

// wasRead says that the members of the key were read at the last look, when it was
// of the type that it has now.
func (s *sight) wasRead() bool {
	return s.last != nil && s.last.kind.typ == s.sample.Type && !s.last.kind.tooLarge
}

// prefixes returns where metadata beside s is looked for before its value is
// known.
func (s subject) prefixes(all []string) []string {
	switch {
	case s.metaPrefix != "":
		return []string{s.metaPrefix}
	case s.ours:
		return all
	default:
		return nil
	}
}

// seenAs is how a look at a key ended.
type seenAs int

const (
	unread seenAs = iota // it could not be read this time; nothing is known
	gone
	there
	retyped // it is of another type than the one it was read as
)

// sight is what a look at one key saw.
type sight struct {
	subject
	as       seenAs
	sample   formats.Sample
	expireAt int64
	idle     time.Duration
	at       time.Time
	meta     metadata
	// lost says that meta proves a hold that ended without a release.
	lost bool
}

// metadata is the companion hash of a key, as far as it was read.
type metadata struct {
	prefix string
	small  bool // within the bounds
	there  bool
	fields map[string]string
	record *record.Meta
}

// id returns the acquisition id in the lock's value, "" if it is not ours.
func (s *sight) id() string {
	if s.sample.Type != "string" || s.sample.TooLarge {
		return ""
	}
	id, _ := record.ParseValue(s.sample.Value)
	return id
}

// inspect looks at up to subjectsPerLook keys. An error means that none was
// read; keys that could not be read one by one come back as unread.
func (r *reader) inspect(ctx context.Context, subjects []subject) ([]sight, error) {
	sights, err := r.look(ctx, subjects)
	if err != nil {
		return nil, err
	}
	var again []subject
	var at []int
	for i := range sights {
		if sights[i].as == retyped {
			s := sights[i].subject
			s.typ = ""
			again, at = append(again, s), append(at, i)
		}
	}
	if len(again) == 0 {
		return sights, nil
	}
	second, err := r.look(ctx, again)
	if err != nil {
		return nil, err
	}
	for j, i := range at {
		if second[j].as == retyped {
			second[j].as = unread
		}
		sights[i] = second[j]
	}
	return sights, nil
}

func (r *reader) look(ctx context.Context, subjects []subject) ([]sight, error) {
	sights := make([]sight, len(subjects))
	for i, s := range subjects {
		sights[i] = sight{subject: s, idle: unknownIdle}
		sights[i].sample.Key = s.key
	}
	steps := []func(context.Context, []sight) error{r.types, r.values, r.rest, r.auxiliary, r.metas, r.settle}
	for _, step := range steps {
		if err := step(ctx, sights); err != nil {
			return nil, err
		}
	}
	return sights, nil
}

// idleError is by how much OBJECT IDLETIME may say too much: it counts the seconds
// of the clock that began between two moments, and that clock is read once in each
// tick of hz, which is at least 1.
const idleError = 2 * time.Second

// types asks for the types that are not known, and for the idle time before
// anything touches the key.
func (r *reader) types(ctx context.Context, sights []sight) error {
	askIdle := !r.noIdle && r.caps.has("object|idletime")
	kinds := make([]*redis.StatusCmd, len(sights))
	idles := make([]*redis.DurationCmd, len(sights))
	now := timeCmd(ctx) // first: it must not be later than any of the looks
	cmds := []redis.Cmder{now}
	for i := range sights {
		if askIdle && !sights[i].known {
			idles[i] = idleCmd(ctx, sights[i].key)
			cmds = append(cmds, idles[i])
		}
		if sights[i].typ == "" {
			kinds[i] = typeCmd(ctx, sights[i].key)
			cmds = append(cmds, kinds[i])
		}
	}
	if len(cmds) > 1 {
		if err := r.exec(ctx, cmds); err != nil {
			return fmt.Errorf("read types: %w", err)
		}
	}
	for i := range sights {
		s := &sights[i]
		if idles[i] != nil {
			switch judge(idles[i].Err()) {
			case fine:
				if idles[i].Err() == nil {
					s.idle = max(0, idles[i].Val()-idleError)
					r.caps.allow("object|idletime")
				}
			case without:
				r.caps.refuse("object|idletime")
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
func (r *reader) values(ctx context.Context, sights []sight) error {
	q := newQuestions(r, len(sights))
	for i := range sights {
		s := &sights[i]
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
	if q.expire && q.expireRefused() {
		r.caps.refuse("pexpiretime")
		return r.values(ctx, sights) // by PTTL
	}
	for i := range sights {
		s := &sights[i]
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

// isSharedInteger says that a value is one of the whole numbers below 10,000, of
// which Redis keeps one object each for all keys (OBJ_SHARED_INTEGERS): its idle
// time is that of the number, not of the key, and may be as old as the server.
func isSharedInteger(value []byte) bool {
	if len(value) == 0 || len(value) > 4 || value[0] == '0' && len(value) > 1 {
		return false
	}
	return !slices.ContainsFunc(value, func(c byte) bool { return c < '0' || c > '9' })
}

// rest reads the members of what is within the bounds and the length of strings
// of which only the beginning was read, and looks for metadata beside values of
// ours where none is known yet.
func (r *reader) rest(ctx context.Context, sights []sight) error {
	q := newQuestions(r, len(sights))
	for i := range sights {
		s := &sights[i]
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
	for i := range sights {
		s := &sights[i]
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
				if s.sample.TooLarge = !within(cmd.Val()); !s.sample.TooLarge {
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

// takeMembers puts the members into the sight, if they could be read. There may
// be more of them by now than were counted.
func (s *sight) takeMembers(read bool, members []formats.Member) {
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

// weightOf is how many bytes the names of members have.
func weightOf(members []formats.Member) (n int) {
	for i := range members {
		n += len(members[i].Name)
	}
	return n
}

// metas reads the metadata found so far.
func (r *reader) metas(ctx context.Context, sights []sight) error {
	cmds := make([]*redis.MapStringStringCmd, len(sights))
	var all []redis.Cmder
	for i := range sights {
		if m := &sights[i].meta; m.there && m.small {
			cmds[i] = fieldsCmd(ctx, record.Companion(m.prefix, record.KindMeta, sights[i].key))
			all = append(all, cmds[i])
		}
	}
	if err := r.exec(ctx, all); err != nil {
		return fmt.Errorf("read metadata: %w", err)
	}
	for i := range sights {
		if cmds[i] == nil {
			continue
		}
		ok, err := r.usable(cmds[i].Err())
		switch {
		case err != nil:
			return fmt.Errorf("read metadata: %w", err)
		case ok && !r.anyTooLong(cmds[i].Val()):
			sights[i].meta.take(cmds[i].Val())
		default:
			sights[i].meta = metadata{}
		}
	}
	return nil
}

// take decodes the fields of a metadata hash. What is malformed in it is left
// out: the rest still tells something. One that has grown beyond the bounds counts as
// never read.
func (m *metadata) take(fields map[string]string) {
	m.fields, m.record, m.there, m.small = nil, nil, len(fields) > 0, within(fields)
	if m.there && m.small {
		m.fields = fields
		m.record, _ = record.Decode(fields)
	}
}
