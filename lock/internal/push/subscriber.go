package push

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/lock/internal/retry"
	"github.com/locksteward/locksteward/lock/internal/transport"
	"github.com/locksteward/locksteward/lock/record"
)

// Callbacks are what a [Subscriber] calls. They are called from several goroutines, and
// must not call the subscriber.
type Callbacks struct {
	// Spawn runs a function in the background. Its context ends when the client is closed.
	Spawn func(func(context.Context))
	// Received is called with each message, of whatever channel.
	Received func(message string)
	// Subscribed is called when the process's own channel is subscribed to. missed says
	// that it was before: messages have been missed.
	Subscribed func(missed bool)
	// Failed is called when a connection could not be made or broke.
	Failed func(error)
}

// Subscriber has one connection to each node on which a channel is subscribed to. The
// process's own channel stays subscribed, others do while waiters await something on
// them. On a Cluster those are sharded where the server has that. It is safe for
// concurrent use.
type Subscriber struct {
	server *transport.Server
	call   Callbacks
	// sharded is cleared for good when a server does not know SSUBSCRIBE.
	sharded atomic.Bool
	// breaks counts connections that broke young, so that opening them slows down.
	breaks atomic.Int32

	mu       sync.Mutex
	own      *channel // nil before Listen
	channels map[string]*channel
	conns    map[*redis.Client]*subConn
}

// channel is one that is subscribed to, or is to be.
type channel struct {
	name    string
	sharded bool
	own     bool
	live    bool // acknowledged by the server, on the present connection
	broke   bool // a connection of it has, since the last acknowledgement
	waiters map[*Waiter]struct{}
	conn    *subConn
}

// New returns a subscriber on the servers of server. It connects when there is a channel.
func New(server *transport.Server, call Callbacks) *Subscriber {
	s := &Subscriber{server: server, call: call, channels: map[string]*channel{}, conns: map[*redis.Client]*subConn{}}
	s.sharded.Store(server.Cluster())
	return s
}

// Listen subscribes to the process's own channel, for good.
func (s *Subscriber) Listen(name string) {
	s.mu.Lock()
	c := &channel{name: name, own: true}
	s.own, s.channels[name] = c, c
	s.mu.Unlock()
	s.place(c)
}

// Listening says whether the process's own channel is subscribed to, as far as is known.
func (s *Subscriber) Listening() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.own != nil && s.own.live
}

// Await subscribes to a channel for w until leave is called. At the acknowledgement w is
// notified: what was published before was not received.
func (s *Subscriber) Await(name string, w *Waiter) (leave func()) {
	s.mu.Lock()
	c, known := s.channels[name]
	if !known {
		c = &channel{name: name, sharded: s.sharded.Load(), waiters: map[*Waiter]struct{}{}}
		s.channels[name] = c
	}
	c.waiters[w] = struct{}{}
	s.mu.Unlock()
	if !known {
		s.place(c)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		// The subscription stays for a moment: the next waiter may be close.
		delete(c.waiters, w)
	}
}

// place gives c to the connection of the node it belongs to, in the background, and
// retries while somebody wants the channel.
func (s *Subscriber) place(c *channel) {
	s.call.Spawn(func(ctx context.Context) {
		for n := 0; ; n++ {
			node, err := s.server.Node(ctx, c.name)
			if err == nil {
				s.assign(c, node)
				return
			}
			s.call.Failed(err)
			if !retry.Pause(ctx, retry.Backoff(n, 100*time.Millisecond, 2*time.Second)) || s.drop(c) {
				return
			}
		}
	})
}

// assign hands c to node's connection, which it opens if there is none.
func (s *Subscriber) assign(c *channel, node *redis.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	conn := s.conns[node]
	if conn == nil {
		conn = &subConn{subscriber: s, node: node, changed: make(chan struct{}, 1), subscribed: map[string]*channel{}}
		s.conns[node] = conn
		s.call.Spawn(conn.run)
	}
	c.conn = conn
	select {
	case conn.changed <- struct{}{}:
	default:
	}
}

// drop forgets c if nobody wants it any more.
func (s *Subscriber) drop(c *channel) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.own || len(c.waiters) > 0 {
		return false
	}
	delete(s.channels, c.name)
	return true
}

// acknowledged marks a channel as subscribed to.
func (s *Subscriber) acknowledged(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[name]
	if c == nil {
		return
	}
	c.live = true
	for w := range c.waiters {
		w.notify(record.Message{})
	}
	if c.own {
		s.call.Subscribed(c.broke)
	}
	c.broke = false
}

// release ends a connection: its channels are placed again.
func (s *Subscriber) release(conn *subConn, err error) {
	if err != nil && strings.Contains(strings.ToLower(err.Error()), "unknown command") {
		s.sharded.Store(false)
	}
	s.mu.Lock()
	if s.conns[conn.node] == conn {
		delete(s.conns, conn.node)
	}
	orphans := s.of(conn)
	for _, c := range orphans {
		c.conn, c.live, c.broke = nil, false, true
		c.sharded = c.sharded && s.sharded.Load()
	}
	s.mu.Unlock()
	for _, c := range orphans {
		if !s.drop(c) {
			s.place(c)
		}
	}
}

// of returns the channels of a connection; mu is held.
func (s *Subscriber) of(conn *subConn) []*channel {
	var list []*channel
	for _, c := range s.channels {
		if c.conn == conn {
			list = append(list, c)
		}
	}
	return list
}
