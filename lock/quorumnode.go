package lock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/lock/internal/transport"
)

// node is one of the masters of a Redlock client.
type node struct {
	index   int
	addr    string
	db      evaler
	server  *transport.Server // nil where db is a test's
	janitor *janitor

	// The rest is under quorum.mu: the process that answers there, "" if it does
	// not say, and since when it can be relied upon.
	runID   string
	started instant
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
		ErrInvalid, e.i, e.a1, e.j, e.a2, e.runID)
}

// Is answers to [ErrInvalid].
func (e *sameServer) Is(target error) bool { return target == ErrInvalid }

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
			return guardError("read its uptime: " + err.Error() + " (hint: RedlockOptions.MinUptime needs the command INFO)")
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
		return guardError("read its uptime: INFO does not tell uptime_in_seconds (hint: leave RedlockOptions.MinUptime at 0)")
	}
	// Start and present are whole seconds each: it may be up for one less.
	return q.introduce(n, runID, q.now().add(time.Second-time.Duration(max(0, uptime))*time.Second))
}

// introduce notes who n is, unless another node is the same.
func (q *quorum) introduce(n *node, runID string, started instant) error {
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
func (q *quorum) tooYoung(n *node, at instant) error {
	if q.minUptime == 0 {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	up := max(0, at.mono-n.started.mono)
	if n.met && up >= q.minUptime {
		return nil
	}
	return guardError(fmt.Sprintf("up for %s, votes after %s (RedlockOptions.MinUptime)", up.Round(time.Second), q.minUptime))
}

// nodeFailure turns a failed round trip to one node into an error, and says what
// the node may have done.
func nodeFailure(op, key string, err error) (effect, error) {
	if g, ok := errors.AsType[guardError](err); ok {
		return effectNone, g
	}
	eff, failure := judge(op, key, err)
	if reply, ok := errors.AsType[*ServerError](failure); ok {
		return eff, reply
	}
	if eff == effectUnknown {
		return eff, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return eff, err
}
