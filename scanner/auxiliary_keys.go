package scanner

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/dialect"
)

// besideKeys is what [caps] calls the right to read them.
const besideKeys = "keys beside locks"

// besideQuestion asks for one key beside a lock.
type besideQuestion struct {
	of  int // which reading
	key string
	cmd redis.Cmder
}

// auxiliary reads the keys beside locks that their dialects ask for: a fair lock is
// known by its queue, a fenced one by its fence. What cannot be read counts as
// not there.
func (r *reader) auxiliary(ctx context.Context, readings []keyReading) error {
	var (
		asked []besideQuestion
		cmds  []redis.Cmder
	)
	if !r.caps.has(besideKeys) {
		return nil
	}
	for i := range readings {
		if readings[i].as != there {
			continue
		}
		for _, ask := range dialect.Asks(readings[i].sample) {
			var cmd redis.Cmder
			if command, ok := sizes[ask.Type]; ok {
				cmd = sizeCmd(ctx, command, ask.Key)
			} else {
				cmd = redis.NewStringCmd(ctx, "getrange", ask.Key, 0, maxBeside-1)
			}
			asked, cmds = append(asked, besideQuestion{of: i, key: ask.Key, cmd: cmd}), append(cmds, cmd)
		}
	}
	if len(cmds) == 0 {
		return nil
	}
	if err := r.exec(ctx, cmds); err != nil {
		return fmt.Errorf("read keys beside locks: %w", err)
	}
	r.caps.allow(besideKeys)
	for _, q := range asked {
		switch judge(q.cmd.Err()) {
		case forbidden:
			r.caps.refuse(besideKeys)
			return nil
		case moved:
			continue // in another slot than the lock: no script could use it
		}
		ok, err := r.usable(q.cmd.Err())
		if err != nil {
			return fmt.Errorf("read keys beside locks: %w", err)
		}
		var got dialect.Beside
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
		if s.Beside == nil {
			s.Beside = map[string]dialect.Beside{}
		}
		s.Beside[q.key] = got
	}
	return nil
}
