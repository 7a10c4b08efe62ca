package redis

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/lock/record"
)

// questions are the commands of one step over several keys, and where each
// key's replies are. The first command is TIME.
type questions struct {
	r      *reader
	expire bool // PEXPIRETIME is worth asking
	memory bool // MEMORY USAGE is

	cmds []redis.Cmder
	at   *redis.TimeCmd

	ttl    []*redis.DurationCmd
	when   []*redis.IntCmd
	size   []*redis.IntCmd
	mem    []*redis.IntCmd
	head   []*redis.StringCmd
	fields []*redis.MapStringStringCmd
	list   []redis.Cmder // members, see membersCmd
	metas  [][]metaQuestion
}

type metaQuestion struct {
	prefix string
	text   *redis.StringCmd
}

func newQuestions(r *reader, n int) *questions {
	at := timeCmd(context.Background())
	return &questions{
		r:      r,
		expire: !r.noExpireTime && r.caps.has("pexpiretime"),
		memory: r.caps.has("memory|usage"),
		cmds:   append(make([]redis.Cmder, 0, 1+6*n), at),
		at:     at,
		ttl:    make([]*redis.DurationCmd, n),
		when:   make([]*redis.IntCmd, n),
		size:   make([]*redis.IntCmd, n),
		mem:    make([]*redis.IntCmd, n),
		head:   make([]*redis.StringCmd, n),
		fields: make([]*redis.MapStringStringCmd, n),
		list:   make([]redis.Cmder, n),
		metas:  make([][]metaQuestion, n),
	}
}

// value asks for expiry, head or size of reading i, whose type is known.
func (q *questions) value(ctx context.Context, i int, s *keyReading) {
	if q.expire {
		q.when[i] = expireTimeCmd(ctx, s.key)
		q.cmds = append(q.cmds, q.when[i])
	} else {
		q.ttl[i] = pttlCmd(ctx, s.key)
		q.cmds = append(q.cmds, q.ttl[i])
	}
	if command, ok := sizes[s.sample.Type]; ok {
		q.size[i] = sizeCmd(ctx, command, s.key)
		q.cmds = append(q.cmds, q.size[i])
	}
	switch {
	case s.sample.Type == "string":
		q.head[i] = rangeCmd(ctx, s.key)
		q.cmds = append(q.cmds, q.head[i])
	case sizes[s.sample.Type] != "" && q.memory:
		q.mem[i] = memoryCmd(ctx, s.key)
		q.cmds = append(q.cmds, q.mem[i])
	}
}

// meta asks for the metadata of key under prefix.
func (q *questions) meta(ctx context.Context, i int, key, prefix string) {
	m := metaQuestion{prefix: prefix, text: metaCmd(ctx, record.Companion(prefix, record.KindHold, key))}
	q.cmds = append(q.cmds, m.text)
	q.metas[i] = append(q.metas[i], m)
}

// expireRefused returns the answer of a server that has no PEXPIRETIME for us, else nil.
func (q *questions) expireRefused() error {
	for _, cmd := range q.when {
		if cmd != nil && judge(cmd.Err()) == without {
			return cmd.Err()
		}
	}
	return nil
}

// takeValue puts the replies about reading i into it.
func (q *questions) takeValue(i int, s *keyReading) error {
	if q.ttl[i] == nil && q.when[i] == nil {
		return nil
	}
	for _, cmd := range []redis.Cmder{q.ttl[i], q.when[i], q.size[i], q.head[i]} {
		if isNil(cmd) {
			continue
		}
		if judge(cmd.Err()) == changed {
			s.as = retyped
			return nil
		}
		ok, err := q.r.usable(cmd.Err())
		if err != nil {
			return fmt.Errorf("read value: %w", err)
		}
		if !ok {
			s.as = unread
			return nil
		}
	}
	if !q.takeExpiry(i, s) {
		s.as = gone
		return nil
	}
	q.learn(q.mem[i], "memory|usage")
	switch s.sample.Type {
	case "string":
		if q.r.tooLong(q.head[i].Val()) {
			s.as = unread
			return nil
		}
		s.sample.Value = []byte(q.head[i].Val())
		s.sample.Size = int64(len(s.sample.Value))
		// There may be more: its length is asked for next.
		s.sample.TooLarge = s.sample.Size >= maxString
		return nil
	default:
		s.sample.TooLarge = !small(q.size[i], q.mem[i], maxHash) // others than these are not read
		if s.sample.TooLarge && sizes[s.sample.Type] != "" && !q.r.caps.has("memory|usage") && s.wasRead() {
			s.as = unread // it may be what it was
			return nil
		}
	}
	if q.size[i] != nil {
		s.sample.Size = q.size[i].Val()
	}
	return nil
}

// takeExpiry works out TTL and expiry time from the one that was asked for and
// the server's time, and says whether the key is there.
func (q *questions) takeExpiry(i int, s *keyReading) bool {
	if q.when[i] != nil {
		switch when := q.when[i].Val(); when {
		case -2:
			return false
		case -1:
			s.sample.TTL, s.expireAt = locksteward.NoExpiry, locksteward.NoExpireAt
		default:
			s.sample.TTL, s.expireAt = max(0, time.UnixMilli(when).Sub(s.at)), when
		}
		return true
	}
	switch ttl := q.ttl[i].Val(); ttl {
	case -2:
		return false
	case -1:
		s.sample.TTL, s.expireAt = locksteward.NoExpiry, locksteward.NoExpireAt
	default:
		s.sample.TTL, s.expireAt = ttl, s.at.Add(ttl).UnixMilli()
	}
	return true
}

// takeMeta puts what was found of metadata into reading i: the first prefix that
// has any.
func (q *questions) takeMeta(i int, s *keyReading) error {
	for _, m := range q.metas[i] {
		ok, err := q.r.usable(m.text.Err())
		if err != nil {
			return fmt.Errorf("read metadata: %w", err)
		}
		if !ok || q.r.tooLong(m.text.Val()) {
			continue // not a string, or not ours to read
		}
		if m.text.Val() != "" && !s.meta.there {
			s.meta = metadata{prefix: m.prefix}
			s.meta.take(m.text.Val())
		}
	}
	return nil
}

// learn notes whether an optional command works.
func (q *questions) learn(cmd *redis.IntCmd, command string) {
	if cmd == nil {
		return
	}
	switch judge(cmd.Err()) {
	case without:
		q.r.caps.refuse(command, cmd.Err())
	case fine:
		if !q.r.caps.has(command) {
			q.r.caps.allow(command)
		}
	}
}

// small says that a hash, list or set is within the bounds, of limit bytes. Without
// MEMORY USAGE nothing bounds what its members weigh, so it is not read.
func small(size, mem *redis.IntCmd, limit int64) bool {
	return size != nil && size.Err() == nil && size.Val() <= maxMembers &&
		mem != nil && mem.Err() == nil && mem.Val() <= limit
}

// within says that fields that were read are within the bounds, of limit bytes: there
// may be more of them by now than were counted, and larger ones.
func within(fields map[string]string, limit int) bool {
	size := 0
	for name, value := range fields {
		size += len(name) + len(value)
	}
	return len(fields) <= maxMembers && size <= limit
}

// isNil says that an interface holds no command.
func isNil(cmd redis.Cmder) bool {
	switch c := cmd.(type) {
	case *redis.DurationCmd:
		return c == nil
	case *redis.IntCmd:
		return c == nil
	case *redis.StringCmd:
		return c == nil
	default:
		return cmd == nil
	}
}
