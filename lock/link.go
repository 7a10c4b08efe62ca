package lock

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/respcheck"
)

// How often an idle link is pinged and checked, how long it may be silent, how
// long it must have lasted for the next one to be opened at once, and how long
// the pause before that is at most: a server that is back is heard within it.
const (
	linkPing    = time.Second
	linkSilence = 4 * time.Second
	linkSteady  = 10 * time.Second
	linkPause   = 3 * time.Second
)

// link is one subscriber connection to one node. It lives until its first
// error: then its topics find a new one, and perhaps another node.
type link struct {
	hub  *hub
	node *redis.Client
	kick chan struct{} // topics have changed

	// done are the topics subscribed to; only run's goroutine touches it.
	done  map[string]*topic
	heard atomic.Int64 // ns of the hub's monotonic clock
}

func (l *link) nudge() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// run serves the link until it breaks or ctx ends.
func (l *link) run(ctx context.Context) {
	began := l.hub.c.clock.now()
	err := l.serve(ctx)
	if ctx.Err() != nil {
		return
	}
	if l.hub.c.clock.now().mono-began.mono > linkSteady {
		l.hub.breaks.Store(0)
	}
	if err != nil {
		l.hub.server.CheckSlots(ctx, err)
		l.hub.c.emit(Event{Kind: EventPushFailed, Err: err})
		n := int(l.hub.breaks.Add(1))
		if !pause(ctx, backoff(n, 50*time.Millisecond, linkPause)) {
			return
		}
	}
	l.hub.dissolve(l, err)
}

var errSilent = errors.New("subscriber connection is silent")

// serve subscribes, pings and unsubscribes, while a second goroutine reads. It
// returns nil when nobody wants anything from this node any more.
func (l *link) serve(ctx context.Context) error {
	ps := l.node.Subscribe(ctx)
	var reader sync.WaitGroup
	defer func() {
		// A second close of the same subscription says so; nothing else can fail.
		_ = ps.Close()
		reader.Wait()
	}()
	broken := make(chan error, 1)
	l.touch()
	if err := l.sync(ctx, ps); err != nil {
		return err
	}
	reader.Go(func() { broken <- l.read(ctx, ps) })

	ping := time.NewTicker(linkPing)
	defer ping.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-broken:
			return err
		case <-l.kick:
			if err := l.sync(ctx, ps); err != nil {
				return err
			}
		case <-ping.C:
			if l.silence() > linkSilence {
				return errSilent
			}
			if err := l.tidy(ctx, ps); err != nil {
				return err
			}
			if len(l.done) == 0 && l.idle() {
				return nil
			}
			if err := ps.Ping(ctx); err != nil {
				return err
			}
		}
	}
}

// read hands what the server pushes to the hub.
func (l *link) read(ctx context.Context, ps *redis.PubSub) error {
	for {
		m, err := respcheck.Message(l.node.Options().Addr, func() (any, error) { return ps.Receive(ctx) })
		if redis.HasErrorPrefix(err, "MISCONF") {
			l.touch() // a server that cannot save refuses PING too, but it answers
			continue
		}
		if err != nil {
			return err
		}
		l.touch()
		switch m := m.(type) {
		case *redis.Subscription:
			switch m.Kind {
			case "subscribe", "ssubscribe":
				l.hub.acknowledged(m.Channel)
			case "sunsubscribe":
				// The server says so by itself when the slot has moved away.
				if l.hub.wanted(l, m.Channel) {
					return errors.New("slot of a channel has moved")
				}
			}
		case *redis.Message:
			l.hub.c.told(m.Payload)
		}
	}
}

// sync subscribes to the topics given to the link since the last time: one
// command each, since a sharded subscription must not span slots.
func (l *link) sync(ctx context.Context, ps *redis.PubSub) error {
	for _, t := range l.hub.given(l) {
		if l.done[t.name] == t {
			continue
		}
		l.done[t.name] = t
		var err error
		if t.sharded {
			err = ps.SSubscribe(ctx, t.name)
		} else {
			err = ps.Subscribe(ctx, t.name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tidy unsubscribes from topics that nobody waits for.
func (l *link) tidy(ctx context.Context, ps *redis.PubSub) error {
	for name, t := range l.done {
		if !l.hub.forget(t) {
			continue
		}
		delete(l.done, name)
		var err error
		if t.sharded {
			err = ps.SUnsubscribe(ctx, name)
		} else {
			err = ps.Unsubscribe(ctx, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// given returns the topics of l.
func (h *hub) given(l *link) []*topic {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []*topic
	for _, t := range h.topics {
		if t.link == l {
			list = append(list, t)
		}
	}
	return list
}

// wanted says whether l still has a topic of that name.
func (h *hub) wanted(l *link, channel string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[channel]
	return t != nil && t.link == l
}

// idle detaches a link without topics from the hub; false if one has come.
func (l *link) idle() bool {
	h := l.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.topics {
		if t.link == l {
			return false
		}
	}
	if h.links[l.node] == l {
		delete(h.links, l.node)
	}
	return true
}

func (l *link) touch() { l.heard.Store(int64(l.hub.c.clock.now().mono)) }

func (l *link) silence() time.Duration {
	return l.hub.c.clock.now().mono - time.Duration(l.heard.Load())
}
