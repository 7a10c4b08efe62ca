package scanner

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/lock/record"
)

// siftFrom is from which share on of keys that are gone when they are read it
// pays to ask for that first.
const siftFrom = 0.5

// sift takes out of errands the keys that are gone, and their metadata with them:
// most locks are short, and of those nothing else need be asked. It hands on what
// their end tells.
func (n *nodeWatch) sift(ctx context.Context, r *reader, errands []errand) ([]errand, error) {
	if n.vanished < siftFrom {
		return errands, nil
	}
	began := time.Now()
	now := timeCmd(ctx)
	cmds := []redis.Cmder{now}
	asked := make([][]*redis.DurationCmd, len(errands))
	for i, e := range errands {
		names := n.beside(e)
		if len(names) == 0 {
			continue
		}
		for _, name := range names {
			cmd := pttlCmd(ctx, name)
			asked[i] = append(asked[i], cmd)
			cmds = append(cmds, cmd)
		}
	}
	if len(cmds) == 1 {
		return errands, nil
	}
	if err := r.exec(ctx, cmds); err != nil {
		return nil, err
	}
	var left, over []errand
	for i, e := range errands {
		away, err := allGone(r, asked[i])
		if err != nil {
			return nil, err
		}
		if len(asked[i]) > 0 {
			n.vanished.note(away)
		}
		if away {
			over = append(over, e)
		} else {
			left = append(left, e)
		}
	}
	n.w.reads.Add(int64(len(over)))
	if len(over) > 0 {
		glances := make([]watchGlance, len(over))
		for i, e := range over {
			glances[i].sight = &sight{subject: subject{key: e.key}, as: gone, at: now.Val()}
		}
		n.settle(ctx, began, over, glances, nil)
	}
	return left, nil
}

// beside returns the keys that must all be gone for the key of e to have ended
// without leaving anything to read: itself, and its metadata if it has any. It
// returns none for a key that is to be read in any case.
func (n *nodeWatch) beside(e errand) []string {
	if !e.written || e.waiters {
		return nil
	}
	names := []string{e.key}
	switch {
	case e.metaPrefix != "":
		names = append(names, record.Companion(e.metaPrefix, record.KindMeta, e.key))
	case n.w.s.table.remember(e.key).ours:
		for _, prefix := range n.w.s.prefixes {
			names = append(names, record.Companion(prefix, record.KindMeta, e.key))
		}
	}
	return names
}

func allGone(r *reader, cmds []*redis.DurationCmd) (bool, error) {
	for _, cmd := range cmds {
		ok, err := r.usable(cmd.Err())
		if err != nil {
			return false, err
		}
		if !ok || cmd.Val() != -2*time.Nanosecond {
			return false, nil
		}
	}
	return len(cmds) > 0, nil
}
