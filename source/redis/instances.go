package redis

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/lock/record"
)

// instanceRead is what was read of one heartbeat key: the instance, nil if the
// key is gone, and whether it could be read at all.
type instanceRead struct {
	id       string
	instance *locksteward.Instance
	read     bool
}

// instances reads heartbeats, bounded as metadata is.
func (r *reader) instances(ctx context.Context, keys []instanceKey) ([]instanceRead, error) {
	var out []instanceRead
	for chunk := range slices.Chunk(keys, subjectsPerLook) {
		got, err := r.someInstances(ctx, chunk)
		if err != nil {
			return nil, fmt.Errorf("read heartbeats: %w", err)
		}
		out = append(out, got...)
	}
	return out, nil
}

func (r *reader) someInstances(ctx context.Context, keys []instanceKey) ([]instanceRead, error) {
	q := newQuestions(r, len(keys))
	for i, k := range keys {
		q.ttl[i], q.size[i] = pttlCmd(ctx, k.key), sizeCmd(ctx, "hlen", k.key)
		q.cmds = append(q.cmds, q.ttl[i], q.size[i])
		if q.memory {
			q.mem[i] = memoryCmd(ctx, k.key)
			q.cmds = append(q.cmds, q.mem[i])
		}
	}
	if err := r.exec(ctx, q.cmds); err != nil {
		return nil, err
	}
	out := make([]instanceRead, len(keys))
	var reads []redis.Cmder
	for i, k := range keys {
		out[i].id = k.id
		okTTL, err := r.usable(q.ttl[i].Err())
		if err != nil {
			return nil, err
		}
		okSize, err := r.usable(q.size[i].Err())
		if err != nil {
			return nil, err
		}
		q.learn(q.mem[i], "memory|usage")
		switch {
		case !okTTL || !okSize:
		case q.ttl[i].Val() == -2:
			out[i].read = true
		default:
			// It is there, whatever can be read of it.
			out[i].read = true
			out[i].instance = &locksteward.Instance{ID: k.id, Beat: beat(q.at.Val(), q.ttl[i].Val())}
			if small(q.size[i], q.mem[i], maxHash) {
				q.fields[i] = fieldsCmd(ctx, k.key)
				reads = append(reads, q.fields[i])
			}
		}
	}
	if err := r.exec(ctx, reads); err != nil {
		return nil, err
	}
	for i := range out {
		if q.fields[i] != nil && q.fields[i].Err() == nil && len(q.fields[i].Val()) > 0 && within(q.fields[i].Val(), maxHash) {
			fill(out[i].instance, q.fields[i].Val())
		}
	}
	return out, nil
}

// fill puts what the heartbeat says into i, whose id and beat come from the key
// itself. What is malformed is left out.
func fill(i *locksteward.Instance, fields map[string]string) {
	decoded, _ := record.DecodeInstance(fields)
	i.App, i.Host, i.PID = decoded.App, decoded.Host, decoded.PID
	i.Slot = decoded.Slot
	if decoded.Started > 0 {
		i.Started = time.UnixMilli(decoded.Started)
	}
	if len(decoded.Counts) == 0 {
		return
	}
	i.Counts = make(map[string]locksteward.Counts, len(decoded.Counts))
	for class, c := range decoded.Counts {
		i.Counts[class] = locksteward.Counts(c)
	}
}

// now returns the server's time.
func (r *reader) now(ctx context.Context) (time.Time, error) {
	cmd := timeCmd(ctx)
	if err := r.exec(ctx, []redis.Cmder{cmd}); err != nil {
		return time.Time{}, fmt.Errorf("ask for the time: %w", err)
	}
	if err := cmd.Err(); err != nil {
		return time.Time{}, fmt.Errorf("ask for the time: %w", err)
	}
	return cmd.Val(), nil
}
