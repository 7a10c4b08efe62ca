package redis

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/pace"
)

// askInfo asks the master; it returns "" where that does not let us ask, which is not
// tried again for a while.
func (p *pass) askInfo(ctx context.Context, sections ...string) (string, error) {
	return p.askInfoAt(ctx, p.pace, p.master.Client, sections...)
}

func (p *pass) askInfoAt(ctx context.Context, server *pace.Server, client *redis.Client, sections ...string) (string, error) {
	if !p.s.caps.has("info") {
		return "", nil
	}
	var text string
	err := p.callAt(ctx, server, 1, func() (err error) {
		text, err = client.Info(ctx, sections...).Result()
		return err
	})
	switch {
	case err == nil:
		p.s.caps.allow("info")
		return text, notLong(text, client.Options().Addr)
	case judge(err) == without:
		p.s.caps.refuse("info", err)
		return "", nil
	default:
		return "", fmt.Errorf("ask for info: %w", err)
	}
}

// upkeep keeps the pace of a server informed: its processor time, a round trip, and its memory now and then.
func (p *pass) upkeep(ctx context.Context, server *pace.Server, client *redis.Client) error {
	now := time.Now()
	due := p.due[server]
	if due == nil {
		due = new(upkeepDue)
		p.due[server] = due
	}
	if now.Sub(due.memory) >= memoryEvery {
		due.memory = now
		text, err := p.askInfoAt(ctx, server, client, "memory")
		if err != nil {
			return err
		}
		p.memoryOf(server, parseInfo(text))
	}
	if now.Sub(due.sample) >= pace.SampleEvery {
		due.sample = now
		text, err := p.askInfoAt(ctx, server, client, "cpu")
		if err != nil {
			return err
		}
		server.Sample(time.Now(), parseInfo(text).counters(p.info.flag("io_threads_active")))
	}
	if now.Sub(due.probe) >= pace.ProbeEvery {
		due.probe = now
		return p.probe(ctx, server, client)
	}
	return nil
}

// upkeepDue is when a server was last asked what its pace goes by.
type upkeepDue struct {
	memory, sample, probe time.Time
}

func (p *pass) memoryOf(server *pace.Server, i info) {
	limit := i.integer("maxmemory")
	server.NearlyFull(limit > 0 && float64(i.integer("used_memory")) > memoryLimit*float64(limit))
}

func (p *pass) probe(ctx context.Context, server *pace.Server, client *redis.Client) error {
	return p.s.paced(ctx, server, func() error {
		waited, began := runDelays(), time.Now()
		if err := client.Ping(ctx).Err(); err != nil && judge(err) != without && !noWrites(err) {
			return err
		}
		now := time.Now()
		server.Probed(now, now.Sub(began), runDelay(waited, runDelays()))
		return nil
	})
}

// call is how the pass's reader reaches the master.
func (p *pass) call(ctx context.Context, n int, pipeline func() error) error {
	return p.callAt(ctx, p.pace, n, pipeline)
}

func (p *pass) callAt(ctx context.Context, server *pace.Server, n int, pipeline func() error) error {
	return p.s.paced(ctx, server, func() error {
		began := time.Now()
		err := pipeline()
		now := time.Now()
		server.Piped(now, n, now.Sub(began))
		return err
	})
}
