package zksource

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// client is a session with the servers of a target, begun when it is needed. It is safe for
// concurrent use.
type client struct {
	spec     spec
	login    source.Login
	timeout  time.Duration // of a request, and half that of the session
	onEvent  func(zk.Event)
	starting chan struct{} // holds a token while nobody begins a session

	mu      sync.Mutex // guards what follows
	current *connection
	closed  bool
	ending  sync.WaitGroup // connections that are being closed
}

func newClient(login source.Login, timeout time.Duration, onEvent func(zk.Event)) (*client, error) {
	s, err := parseURL(login.URL)
	if err != nil {
		return nil, err
	}
	switch {
	case s.tls && login.TLS == nil:
		login.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	case !s.tls && login.TLS != nil:
		return nil, fmt.Errorf("url: TLS settings are given but zookeeper:// is not encrypted; write zookeeper+tls:// and the servers' secureClientPort: %w", locksteward.ErrInvalid)
	}
	if login.Username != "" {
		s.user = login.Username
	}
	c := &client{spec: s, login: login, timeout: timeout, onEvent: onEvent, starting: make(chan struct{}, 1)}
	c.starting <- struct{}{}
	return c, nil
}

// get returns a connection that has a session, or why there is none.
func (c *client) get(ctx context.Context) (*zk.Conn, error) {
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-c.starting:
	}
	defer func() { c.starting <- struct{}{} }()
	c.mu.Lock()
	n, closed := c.current, c.closed
	c.mu.Unlock()
	if closed {
		return nil, net.ErrClosed
	}
	if n != nil {
		n.mu.Lock()
		up := isClosed(n.up)
		n.mu.Unlock()
		if up {
			return n.conn, nil
		}
	}
	began := n == nil
	if began {
		var err error
		if n, err = c.start(); err != nil {
			return nil, err
		}
	}
	err := c.await(ctx, n)
	if err == nil && began {
		err = c.logIn(ctx, n)
	}
	if err == nil {
		err = c.keep(n)
	}
	if err == nil {
		return n.conn, nil
	}
	n.mu.Lock()
	trace := n.trace
	n.mu.Unlock()
	c.drop(n)
	if errors.Is(err, errNoSession) {
		return nil, c.diagnose(ctx, trace)
	}
	return nil, err
}

var errNoSession = errors.New("no server begins a session")

// await waits until the connection has a session.
func (c *client) await(ctx context.Context, n *connection) error {
	n.mu.Lock()
	up, refused := n.up, n.refused
	n.mu.Unlock()
	timer := time.NewTimer(c.timeout)
	defer timer.Stop()
	select {
	case <-up:
		return nil
	case <-timer.C:
		return errNoSession
	case <-refused:
		return errNoSession
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), context.Canceled) {
			return context.Cause(ctx)
		}
		return errNoSession
	}
}

// logIn proves who we are, if anybody.
func (c *client) logIn(ctx context.Context, n *connection) error {
	var password locksteward.Secret
	if c.login.Password != nil {
		var err error
		if password, err = c.login.Password(); err != nil {
			return err
		}
	}
	if c.spec.user == "" {
		return nil
	}
	_, err := within(ctx, c.timeout, func() (struct{}, error) {
		return struct{}{}, n.conn.AddAuth("digest", []byte(c.spec.user+":"+password.Reveal()))
	})
	return err
}

// keep makes n the connection that everybody uses.
func (c *client) keep(n *connection) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.current = n
	return nil
}

// drop closes a connection in the background, so that the next call begins another: with
// the addresses and the password of then.
func (c *client) drop(n *connection) {
	n.mu.Lock()
	n.dropped = true
	n.mu.Unlock()
	c.mu.Lock()
	if c.current == n {
		c.current = nil
	}
	if !c.closed { // else somebody may wait already
		c.ending.Go(n.close)
	}
	closed := c.closed
	c.mu.Unlock()
	if closed {
		n.close()
	}
}

// reset drops the current connection, for instance because its user lacks a right: the
// password may be another one by now.
func (c *client) reset() {
	c.mu.Lock()
	n := c.current
	c.mu.Unlock()
	if n != nil {
		c.drop(n)
	}
}

func (c *client) close() {
	c.mu.Lock()
	c.closed = true
	n := c.current
	c.mu.Unlock()
	if n != nil {
		c.drop(n)
	}
	c.ending.Wait()
}

// within calls f, which takes no context, and returns at the latest when ctx is done or the
// timeout has passed. f then ends with the connection.
func within[T any](ctx context.Context, timeout time.Duration, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	ch := make(chan result, 1)
	go func() {
		v, err := f()
		ch <- result{v, err}
	}()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	var zero T
	select {
	case r := <-ch:
		return r.value, r.err
	case <-ctx.Done():
		return zero, context.Cause(ctx)
	case <-timer.C:
		return zero, errTimeout
	}
}

var errTimeout = errors.New("the server did not answer in time")

// call runs f with a connection that has a session.
func call[T any](ctx context.Context, c *client, f func(*zk.Conn) (T, error)) (T, error) {
	conn, err := c.get(ctx)
	if err != nil {
		var zero T
		return zero, err
	}
	return within(ctx, c.timeout, func() (T, error) { return f(conn) })
}

// path is a path below the chroot as the servers know it.
func (c *client) path(p string) string {
	if p == "/" && c.spec.chroot != "" {
		return c.spec.chroot
	}
	return c.spec.chroot + p
}
