package lock

import (
	"context"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// direct is how many requests at once each have a connection of their own where
// there is a lane: below that, sharing one gains nothing.
const direct = 4

// lane is the shared connection of Options.Pipeline: go-redis's automatic
// pipelining in full duplex, one connection per node.
type lane struct {
	ap    *redis.AutoPipeliner
	going atomic.Int32
}

func laneOptions() *redis.AutoPipelineOptions {
	return &redis.AutoPipelineOptions{FullDuplex: true, MaxConcurrentBatches: 1}
}

// process sends cmd over the shared connection if many are under way; false if
// it is to be sent as usual. A command that is given up when ctx ends may still
// be executed, and must not be touched any more.
func (l *lane) process(ctx context.Context, cmd *redis.Cmd) (done bool, err error) {
	if l.going.Add(1) <= direct {
		return false, nil
	}
	if deadline, ok := ctx.Deadline(); ok {
		timed, cancel := context.WithDeadline(ctx, deadline)
		defer cancel()
		ctx = timed
	}
	return true, l.ap.Submit(ctx, cmd).WaitContext(ctx)
}

// leave ends what process began.
func (l *lane) leave() { l.going.Add(-1) }
