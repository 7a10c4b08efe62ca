package push

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/respcheck"
	"github.com/locksteward/locksteward/lock/internal/retry"
)

const (
	pingEvery  = time.Second      // and how often channels are looked through
	maxSilence = 4 * time.Second  // of the server, after which the connection is given up
	steady     = 10 * time.Second // a connection that lasted so long is replaced at once
	maxPause   = 3 * time.Second  // between two connections otherwise
)

// subConn is one subscriber connection to one node. It lives until its first error: then
// its channels find a new one, perhaps of another node.
type subConn struct {
	subscriber *Subscriber
	node       *redis.Client
	changed    chan struct{} // channels were assigned

	subscribed map[string]*channel // only run's goroutine touches it
	answeredAt atomic.Pointer[time.Time]
}

// run serves the connection until it breaks or ctx ends.
func (c *subConn) run(ctx context.Context) {
	s, began := c.subscriber, time.Now()
	err := c.serve(ctx)
	if ctx.Err() != nil {
		return
	}
	if time.Since(began) > steady {
		s.breaks.Store(0)
	}
	if err != nil {
		s.server.CheckSlots(ctx, err)
		s.call.Failed(err)
		n := int(s.breaks.Add(1))
		if !retry.Pause(ctx, retry.Backoff(n, 50*time.Millisecond, maxPause)) {
			return
		}
	}
	s.release(c, err)
}

var errSilent = errors.New("subscriber connection is silent")

// serve subscribes, pings and unsubscribes, while a second goroutine reads. It returns
// nil when nobody wants anything from this node any more.
func (c *subConn) serve(ctx context.Context) error {
	ps := c.node.Subscribe(ctx)
	var reader sync.WaitGroup
	defer func() {
		// A second close of the same subscription says so; nothing else can fail.
		_ = ps.Close()
		reader.Wait()
	}()
	broken := make(chan error, 1)
	c.answered()
	if err := c.subscribe(ctx, ps); err != nil {
		return err
	}
	reader.Go(func() { broken <- c.read(ctx, ps) })

	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-broken:
			return err
		case <-c.changed:
			if err := c.subscribe(ctx, ps); err != nil {
				return err
			}
		case <-ping.C:
			if time.Since(*c.answeredAt.Load()) > maxSilence {
				return errSilent
			}
			if err := c.unsubscribe(ctx, ps); err != nil {
				return err
			}
			if len(c.subscribed) == 0 && c.detach() {
				return nil
			}
			if err := ps.Ping(ctx); err != nil {
				return err
			}
		}
	}
}

// read hands on what the server pushes.
func (c *subConn) read(ctx context.Context, ps *redis.PubSub) error {
	for {
		m, err := respcheck.Message(c.node.Options().Addr, func() (any, error) { return ps.Receive(ctx) })
		if redis.HasErrorPrefix(err, "MISCONF") {
			c.answered() // a server that cannot save refuses PING too, but it answers
			continue
		}
		if err != nil {
			return err
		}
		c.answered()
		switch m := m.(type) {
		case *redis.Subscription:
			switch m.Kind {
			case "subscribe", "ssubscribe":
				c.subscriber.acknowledged(m.Channel)
			case "sunsubscribe":
				// The server says so by itself when the slot has moved away.
				if c.has(m.Channel) {
					return errors.New("slot of a channel has moved")
				}
			}
		case *redis.Message:
			c.subscriber.call.Received(m.Payload)
		}
	}
}

// subscribe subscribes to the channels assigned since the last time: one command each,
// since a sharded subscription must not span slots.
func (c *subConn) subscribe(ctx context.Context, ps *redis.PubSub) error {
	c.subscriber.mu.Lock()
	assigned := c.subscriber.of(c)
	c.subscriber.mu.Unlock()
	for _, ch := range assigned {
		if c.subscribed[ch.name] == ch {
			continue
		}
		c.subscribed[ch.name] = ch
		send := ps.Subscribe
		if ch.sharded {
			send = ps.SSubscribe
		}
		if err := send(ctx, ch.name); err != nil {
			return err
		}
	}
	return nil
}

// unsubscribe unsubscribes from channels that nobody waits on.
func (c *subConn) unsubscribe(ctx context.Context, ps *redis.PubSub) error {
	for name, ch := range c.subscribed {
		if !c.subscriber.drop(ch) {
			continue
		}
		delete(c.subscribed, name)
		send := ps.Unsubscribe
		if ch.sharded {
			send = ps.SUnsubscribe
		}
		if err := send(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// has says whether c still has a channel of that name.
func (c *subConn) has(name string) bool {
	s := c.subscriber
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.channels[name]
	return ch != nil && ch.conn == c
}

// detach takes a connection without channels from the subscriber; false if one was
// assigned.
func (c *subConn) detach() bool {
	s := c.subscriber
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.of(c)) > 0 {
		return false
	}
	if s.conns[c.node] == c {
		delete(s.conns, c.node)
	}
	return true
}

func (c *subConn) answered() {
	now := time.Now()
	c.answeredAt.Store(&now)
}
