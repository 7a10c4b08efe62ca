package transport

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is connections of our own to one deployment of Redis. It is safe for concurrent
// use.
type Server struct {
	rdb redis.UniversalClient
	// cluster has the slots spread over nodes, so that channels are sharded too
	// where the server has that.
	cluster    *redis.ClusterClient
	single     *redis.Client
	reloadedAt atomic.Int64 // when the map of slots was last asked for anew, ns since 1970

	maxInFlight int // round trips of shared requests to one node at once
	timeout     time.Duration
	queues      sync.Map // by *redis.Client of the node: *requestQueue
}

// Client returns the client of all nodes, for commands that are no scripts.
func (s *Server) Client() redis.UniversalClient { return s.rdb }

// Cluster says that the server is a Redis Cluster.
func (s *Server) Cluster() bool { return s.cluster != nil }

// Node returns the client of the master that a key or channel belongs to.
func (s *Server) Node(ctx context.Context, key string) (*redis.Client, error) {
	if s.cluster == nil {
		return s.single, nil
	}
	return s.cluster.MasterForKey(ctx, key)
}

// Delete deletes a key.
func (s *Server) Delete(ctx context.Context, key string) error { return s.rdb.Del(ctx, key).Err() }

// Eval runs a script in one round trip. It names the script by its hash and sends it in
// full, once, to a server that does not know it. ctx needs a deadline, and the script is
// given up when ctx ends: it may still be executed, and the arguments must not change any
// more. redis.ErrPoolTimeout means that it was never sent.
func (s *Server) Eval(ctx context.Context, sc *Script, keys []string, args []any) (any, error) {
	v, err := s.call(ctx, sc, "evalsha", &sc.sha, keys, args)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		v, err = s.call(ctx, sc, "eval", &sc.text, keys, args)
	}
	s.CheckSlots(ctx, err)
	return v, err
}

// reloadEvery is how often the map of slots is asked for anew at most.
const reloadEvery = 200 * time.Millisecond

// CheckSlots asks for the map of slots anew when err says that a node did not answer:
// go-redis does that by itself only when a node says that the slot is elsewhere, and a
// dead one says nothing.
func (s *Server) CheckSlots(ctx context.Context, err error) {
	if s.cluster == nil || err == nil {
		return
	}
	if _, reply := errors.AsType[redis.Error](err); reply {
		return
	}
	now, last := time.Now().UnixNano(), s.reloadedAt.Load()
	if now-last > int64(reloadEvery) && s.reloadedAt.CompareAndSwap(last, now) {
		s.cluster.ReloadState(ctx)
	}
}

// call sends one command.
func (s *Server) call(ctx context.Context, sc *Script, name any, text *string, keys []string, args []any) (any, error) {
	list := argLists.Get().(*[]any)
	cmd := command(ctx, *list, name, text, keys, args)
	var err error
	if sc.priority == Now {
		err = s.rdb.Process(ctx, cmd)
	} else {
		err = s.share(ctx, keys[0], cmd, sc.priority == First)
		if err != nil && s.cluster != nil && elsewhere(err) {
			// The client of the Cluster follows to where the slot is now.
			cmd = command(ctx, nil, name, text, keys, args)
			err = s.rdb.Process(ctx, cmd)
		}
	}
	if err != nil {
		return nil, err // a command that was given up may still be read
	}
	*list = cmd.Args()
	clear(*list)
	*list = (*list)[:0]
	argLists.Put(list)
	return cmd.Val(), nil
}

// share sends a command through the queue of the node that has key.
func (s *Server) share(ctx context.Context, key string, cmd *redis.Cmd, urgent bool) error {
	node, err := s.Node(ctx, key)
	if err != nil {
		return err
	}
	q, known := s.queues.Load(node)
	if !known {
		q, _ = s.queues.LoadOrStore(node, &requestQueue{rdb: node, maxInFlight: s.maxInFlight, timeout: s.timeout})
	}
	return q.(*requestQueue).process(ctx, cmd, urgent)
}

// elsewhere says that a command was not executed because its slot is elsewhere,
// or on its way, or the node has left the Cluster.
func elsewhere(err error) bool {
	return redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK") ||
		redis.HasErrorPrefix(err, "TRYAGAIN") || errors.Is(err, redis.ErrClosed)
}

// Close waits for what is under way and closes the connections.
func (s *Server) Close() error {
	s.queues.Range(func(_, q any) bool {
		q.(*requestQueue).close()
		return true
	})
	// A connection that go-redis was closing itself, for what it had read, is closed.
	if err := s.rdb.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
