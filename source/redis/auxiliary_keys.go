package redis

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/source/redis/formats"
)

// auxiliaryRight is what [caps] calls the right to read auxiliary keys.
const auxiliaryRight = "keys beside locks"

// auxiliaryQuestion asks for one key beside a lock.
type auxiliaryQuestion struct {
	of  int // which reading
	key string
	cmd redis.Cmder
}

// auxiliary reads the auxiliary keys that the formats of the locks ask for: a fair lock is
// known by its queue, a fenced one by its fence. What cannot be read counts as
// not there.
func (r *reader) auxiliary(ctx context.Context, readings []keyReading) error {
	var (
		asked []auxiliaryQuestion
		cmds  []redis.Cmder
	)
	if !r.caps.has(auxiliaryRight) {
		return nil
	}
	for i := range readings {
		if readings[i].as != there {
			continue
		}
		for _, ask := range formats.AuxiliaryReads(readings[i].sample) {
			var cmd redis.Cmder
			if command, ok := sizes[ask.Type]; ok {
				cmd = sizeCmd(ctx, command, ask.Key)
			} else {
				cmd = redis.NewStringCmd(ctx, "getrange", ask.Key, 0, maxAuxiliary-1)
			}
			asked, cmds = append(asked, auxiliaryQuestion{of: i, key: ask.Key, cmd: cmd}), append(cmds, cmd)
		}
	}
	if len(cmds) == 0 {
		return nil
	}
	if err := r.exec(ctx, cmds); err != nil {
		return fmt.Errorf("read keys beside locks: %w", err)
	}
	r.caps.allow(auxiliaryRight)
	for _, q := range asked {
		switch judge(q.cmd.Err()) {
		case forbidden:
			r.caps.refuse(auxiliaryRight, q.cmd.Err())
			return nil
		case moved:
			continue // in another slot than the lock: no script could use it
		}
		ok, err := r.usable(q.cmd.Err())
		if err != nil {
			return fmt.Errorf("read keys beside locks: %w", err)
		}
		var got formats.Auxiliary
		switch cmd := q.cmd.(type) {
		case *redis.IntCmd:
			got.Size = cmd.Val()
		case *redis.StringCmd:
			got.Value, got.Size = []byte(cmd.Val()), int64(len(cmd.Val()))
		}
		if !ok || got.Size == 0 {
			continue
		}
		s := &readings[q.of].sample
		if s.Auxiliary == nil {
			s.Auxiliary = map[string]formats.Auxiliary{}
		}
		s.Auxiliary[q.key] = got
	}
	return nil
}
