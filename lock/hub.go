package lock

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/lock/internal/transport"
)

// hub is the push side of a client: one connection per node that has a channel
// somebody listens to, however many those are. On a Cluster each lock that is
// waited for has a channel, sharded where the server has that; the instance
// channel is not sharded.
//
// What is pushed is a hint: every waiter polls too, and a hold ends by the clock.
type hub struct {
	c      *Client
	server *transport.Server
	// sharded is cleared for good when a server does not know SSUBSCRIBE.
	sharded atomic.Bool
	// breaks counts links that broke young, so that opening them slows down.
	breaks atomic.Int32
	// reviews counts those that were asked for and have not ended.
	reviews atomic.Int32

	mu     sync.Mutex
	own    *topic // the process's own channel; nil before begin
	topics map[string]*topic
	links  map[*redis.Client]*link
}

// topic is one channel.
type topic struct {
	name     string
	sharded  bool
	instance bool
	live     bool // acknowledged by the server, on the present connection
	broke    bool // a connection of it has, since the last acknowledgement
	waiters  map[*waiter]struct{}
	link     *link
}

func newHub(c *Client, s *transport.Server) *hub {
	h := &hub{c: c, server: s, topics: map[string]*topic{}, links: map[*redis.Client]*link{}}
	h.sharded.Store(s.Cluster())
	return h
}

// listen subscribes to the process's own channel, for good.
func (h *hub) listen(channel string) {
	h.mu.Lock()
	t := &topic{name: channel, instance: true}
	h.own, h.topics[channel] = t, t
	h.mu.Unlock()
	h.place(t)
}

// channelFor returns the channel on which the process is notified of its turn for
// the lock with that wake name: one of the lock's slot on a Cluster, and otherwise
// "", for its own.
func (h *hub) channelFor(wake string) string {
	if !h.server.Cluster() {
		return ""
	}
	return wake + ":" + h.c.instance
}

// await subscribes to a channel for w. At the acknowledgement w tries again: what
// was published before was not received.
func (h *hub) await(channel string, w *waiter) (leave func()) {
	h.mu.Lock()
	t, known := h.topics[channel]
	if !known {
		t = &topic{name: channel, sharded: h.sharded.Load(), waiters: map[*waiter]struct{}{}}
		h.topics[channel] = t
	}
	t.waiters[w] = struct{}{}
	h.mu.Unlock()
	if !known {
		h.place(t)
	}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		// The subscription stays for a moment: the next waiter may be close.
		delete(t.waiters, w)
	}
}

// place gives t to the connection of the node it belongs to, in the background,
// trying for as long as somebody wants it.
func (h *hub) place(t *topic) {
	h.c.spawn(func(ctx context.Context) {
		for n := 0; ; n++ {
			node, err := h.server.Node(ctx, t.name)
			if err == nil {
				h.join(t, node)
				return
			}
			h.c.emit(Event{Kind: EventPushFailed, Err: err})
			if !pause(ctx, backoff(n, 100*time.Millisecond, 2*time.Second)) || h.forget(t) {
				return
			}
		}
	})
}

// join hands t to node's link, which it opens if there is none.
func (h *hub) join(t *topic, node *redis.Client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.links[node]
	if l == nil {
		l = &link{hub: h, node: node, kick: make(chan struct{}, 1), done: map[string]*topic{}}
		h.links[node] = l
		h.c.spawn(l.run)
	}
	t.link = l
	l.nudge()
}

// forget drops t if nobody wants it any more.
func (h *hub) forget(t *topic) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.instance || len(t.waiters) > 0 {
		return false
	}
	delete(h.topics, t.name)
	return true
}

// acknowledged marks a channel as heard from now on.
func (h *hub) acknowledged(channel string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.topics[channel]; t != nil {
		t.live = true
		for w := range t.waiters {
			w.told(word{})
		}
		if t.instance {
			h.c.turns.all()
		}
		if t.instance && t.broke {
			h.review()
		}
		t.broke = false
	}
}

// dissolve ends a link: its topics are placed again, after a pause that grows
// while nothing is heard.
func (h *hub) dissolve(l *link, err error) {
	if isUnknownCommand(err) {
		h.sharded.Store(false)
	}
	h.mu.Lock()
	if h.links[l.node] == l {
		delete(h.links, l.node)
	}
	var orphans []*topic
	for _, t := range h.topics {
		if t.link != l {
			continue
		}
		t.link, t.live, t.broke = nil, false, true
		t.sharded = t.sharded && h.sharded.Load()
		orphans = append(orphans, t)
	}
	h.mu.Unlock()
	for _, t := range orphans {
		if !h.forget(t) {
			h.place(t)
		}
	}
}

func isUnknownCommand(err error) bool {
	return err != nil && strings.Contains(strings.ToLower(err.Error()), "unknown command")
}
