package redlock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/internal/backend"
	"github.com/locksteward/locksteward/lock/internal/transport"
)

// server is the connections to a node.
type server interface {
	Eval(ctx context.Context, s *transport.Script, keys []string, args []any) (any, error)
	Delete(ctx context.Context, key string) error
	Close() error
}

// node is one of the masters of a Redlock client.
type node struct {
	index   int
	addr    string
	server  server
	cleaner *cleaner

	// The rest is under quorum.mu: the process that answers there, "" if it does
	// not say, and since when it can be relied upon.
	runID   string
	started time.Time
	met     bool
}

// guardError is a vote that is refused on this side. It wraps nothing: go-redis
// takes off a layer of what OnConnect returns.
type guardError string

func (e guardError) Error() string { return string(e) }

// sameServer is two nodes that are one.
type sameServer struct {
	i, j    int
	a1, a2  string
	runID   string
	refused *node
}

func (e *sameServer) Error() string {
	return fmt.Sprintf("%s: nodes[%d] (%s) and nodes[%d] (%s) are the same server (run_id %s)",
		lock.ErrInvalid, e.i, e.a1, e.j, e.a2, e.runID)
}

// Is answers to [lock.ErrInvalid].
func (e *sameServer) Is(target error) bool { return target == lock.ErrInvalid }

// meet runs on each new connection to n: who is it, and since when? All
// connections break when a server restarts, so that no vote of a new process is
// counted as one of the old.
func (q *quorum) meet(ctx context.Context, n *node, cn *redis.Conn) error {
	info, err := cn.Info(ctx, "server").Result()
	if err != nil {
		_, refused := errors.AsType[redis.Error](err)
		switch {
		case refused && q.minUptime == 0:
			return nil
		case refused:
			return guardError("read its uptime: " + err.Error() + " (hint: redlock.Options.MinUptime needs the command INFO)")
		default:
			return err
		}
	}
	var runID string
	uptime := int64(-1)
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "run_id":
			runID = value
		case "uptime_in_seconds":
			if s, err := strconv.ParseInt(value, 10, 64); err == nil {
				uptime = s
			}
		}
	}
	if uptime < 0 && q.minUptime > 0 {
		return guardError("read its uptime: INFO does not tell uptime_in_seconds (hint: leave redlock.Options.MinUptime at 0)")
	}
	// Start and present are whole seconds each: it may be up for one less.
	return q.introduce(n, runID, time.Now().Add(time.Second-time.Duration(max(0, uptime))*time.Second))
}

// introduce notes who n is, unless another node is the same.
func (q *quorum) introduce(n *node, runID string, started time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, o := range q.nodes {
		if o == n || runID == "" || o.runID != runID {
			continue
		}
		first, second := o, n
		if n.index < o.index {
			first, second = n, o
		}
		n.runID, n.met = "", false
		same := &sameServer{first.index, second.index, first.addr, second.addr, runID, n}
		q.same.Store(same)
		return guardError(same.Error())
	}
	n.runID, n.started, n.met = runID, started, true
	if same := q.same.Load(); same != nil && same.refused == n {
		q.same.Store(nil)
	}
	return nil
}

// tooYoung says why a vote of n at the moment at does not count; nil if it does.
func (q *quorum) tooYoung(n *node, at time.Time) error {
	if q.minUptime == 0 {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	up := max(0, at.Sub(n.started))
	if n.met && up >= q.minUptime {
		return nil
	}
	return guardError(fmt.Sprintf("up for %s, votes after %s (redlock.Options.MinUptime)", up.Round(time.Second), q.minUptime))
}

// nodeFailure turns a failed round trip to one node into an error, and says what
// the node may have done.
func (q *quorum) nodeFailure(op, key string, err error) (backend.Effect, error) {
	if g, ok := errors.AsType[guardError](err); ok {
		return backend.EffectNone, g
	}
	effect, failure := q.host.Classify(op, key, err)
	if reply, ok := errors.AsType[*lock.ServerError](failure); ok {
		return effect, reply
	}
	if effect == backend.EffectUnknown {
		return effect, fmt.Errorf("%w: %w", lock.ErrUnknown, err)
	}
	return effect, err
}
