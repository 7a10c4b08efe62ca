package releaser

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/source/redis/formats"
)

// maxAuxiliary is how many bytes are read of an auxiliary string, as the scanner does.
const maxAuxiliary = 64

// readMembers reads a sorted set, a list or a set, bounded; other types are read
// by no format.
func readMembers(ctx context.Context, cn *redis.Conn, s *formats.Sample) error {
	size := map[string]func(context.Context, string) *redis.IntCmd{"zset": cn.ZCard, "list": cn.LLen, "set": cn.SCard}[s.Type]
	s.TooLarge = true
	if size == nil {
		return nil
	}
	n, err := size(ctx, s.Key).Result()
	if err != nil {
		return ignoreWrongType(err, s)
	}
	memory, err := cn.MemoryUsage(ctx, s.Key).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return ignoreWrongType(err, s)
	}
	if s.Size = n; n > maxFields || memory > maxHashMem {
		return nil
	}
	members, err := members(ctx, cn, s.Type, s.Key)
	if err != nil {
		return ignoreWrongType(err, s)
	}
	s.Members, s.Size, s.TooLarge = members, int64(len(members)), len(members) > maxFields
	return nil
}

// members reads a sorted set and a list in their order, a set in that of its
// members.
func members(ctx context.Context, cn *redis.Conn, kind, key string) ([]formats.Member, error) {
	var (
		out   []formats.Member
		names []string
		err   error
	)
	switch kind {
	case "zset":
		list, err := cn.ZRangeWithScores(ctx, key, 0, maxFields).Result()
		for _, z := range list {
			name, _ := z.Member.(string)
			out = append(out, formats.Member{Name: name, Score: z.Score})
		}
		return out, err
	case "list":
		names, err = cn.LRange(ctx, key, 0, maxFields).Result()
	default:
		names, err = cn.SMembers(ctx, key).Result()
		slices.SortFunc(names, strings.Compare)
	}
	for _, name := range names {
		out = append(out, formats.Member{Name: name})
	}
	return out, err
}

// readAuxiliary reads the auxiliary keys that the format of the lock asks for. One that
// is of another type counts as not there; so does one that may not be read, which
// is returned: without it the lock may look like another.
func readAuxiliary(ctx context.Context, cn *redis.Conn, s *formats.Sample) (denied string, err error) {
	for _, ask := range formats.AuxiliaryReads(*s) {
		var got formats.Auxiliary
		switch ask.Type {
		case "list":
			got.Size, err = cn.LLen(ctx, ask.Key).Result()
		case "hash":
			got.Size, err = cn.HLen(ctx, ask.Key).Result()
		case "zset":
			got.Size, err = cn.ZCard(ctx, ask.Key).Result()
		default:
			got.Value, err = cn.GetRange(ctx, ask.Key, 0, maxAuxiliary-1).Bytes()
			got.Size = int64(len(got.Value))
		}
		if redis.HasErrorPrefix(err, "NOPERM") {
			denied = ask.Key
		} else if err != nil && !isReplyError(err) {
			return denied, err
		}
		if err != nil || got.Size == 0 {
			continue
		}
		if s.Auxiliary == nil {
			s.Auxiliary = map[string]formats.Auxiliary{}
		}
		s.Auxiliary[ask.Key] = got
	}
	return denied, nil
}
