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

const (
	dialTimeout = 3 * time.Second // for the TLS handshake, too
	// maxPacket bounds an answer of a server: the names of about a million children.
	maxPacket = 64 << 20
	// maxRequest bounds what we send: the library sends the watches of 128 kB of paths at a time.
	maxRequest = 256 << 10
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

// connection is one zk.Conn, which goes on from server to server with one session.
type connection struct {
	conn *zk.Conn
	stop context.CancelFunc // of dialing
	done chan struct{}      // closed when its goroutines have ended

	mu      sync.Mutex    // guards what follows
	dropped bool          // its events count no more
	up      chan struct{} // closed while a server serves the session
	refused chan struct{} // closed when no server took a connection since it was up
	misses  int           // attempts in a row that reached no server
	net     net.Conn      // to the current server
	trace   error         // why there is none
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

// quiet drops what the library logs: errors reach us another way.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// hosts passes the servers to the library by name, so that each is looked up when it is
// dialed.
type hosts struct {
	servers    []string
	next, last int
}

func (h *hosts) Init(servers []string) error {
	h.servers, h.next, h.last = servers, 0, -1
	return nil
}

func (h *hosts) Len() int { return len(h.servers) }

func (h *hosts) Next() (server string, retryStart bool) {
	i := h.next
	h.next = (i + 1) % len(h.servers)
	retryStart = i == h.last // a round is over: the library waits for a second
	h.last = max(h.last, 0)
	return h.servers[i], retryStart
}

func (h *hosts) Connected() { h.last = (h.next + len(h.servers) - 1) % len(h.servers) }

// handshake bounds how long a server may take to answer: the library waits for ten times
// the time that it waits for any other answer.
type handshake struct {
	net.Conn
	limit time.Duration
}

func (h handshake) SetReadDeadline(t time.Time) error {
	if limit := time.Now().Add(h.limit); t.After(limit) {
		t = limit
	}
	return h.Conn.SetReadDeadline(t)
}

// handshakeError is a TLS handshake that failed.
type handshakeError struct{ err error }

func (e *handshakeError) Error() string { return "TLS handshake: " + e.err.Error() }
func (e *handshakeError) Unwrap() error { return e.err }

// dialServer connects to the server at host:port, with TLS unless cfg is nil. Where cfg has no
// ServerName the certificate must be for the host.
func dialServer(ctx context.Context, addr string, cfg *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil || cfg == nil {
		return conn, err
	}
	if cfg.ServerName == "" {
		cfg = cfg.Clone()
		if cfg.ServerName, _, err = net.SplitHostPort(addr); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	secure := tls.Client(conn, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close() // the handshake may have closed it already
		return nil, &handshakeError{err}
	}
	return secure, nil
}

// start makes a connection. It does no I/O.
func (c *client) start() (*connection, error) {
	ctx, stop := context.WithCancel(context.Background())
	n := &connection{stop: stop, done: make(chan struct{}), up: make(chan struct{}), refused: make(chan struct{})}
	dial := func(_, address string, _ time.Duration) (net.Conn, error) {
		conn, err := dialServer(ctx, address, c.login.TLS)
		n.mu.Lock()
		defer n.mu.Unlock()
		n.trace = err
		if err != nil {
			if n.misses++; n.misses == len(c.spec.servers) {
				close(n.refused)
			}
			return nil, err
		}
		n.net = conn
		return handshake{conn, c.timeout}, nil
	}
	conn, events, err := zk.Connect(c.spec.servers, 2*c.timeout,
		zk.WithHostProvider(&hosts{}), zk.WithDialer(dial), zk.WithLogger(quiet{}), zk.WithLogInfo(false),
		zk.WithMaxBufferSize(maxPacket), zk.WithMaxConnBufferSize(maxRequest), zk.WithEventCallback(func(e zk.Event) { n.event(e, c.onEvent) }))
	if err != nil {
		stop()
		return nil, err
	}
	n.conn = conn
	go func() {
		defer close(n.done)
		for range events { // the callback has them all
		}
	}()
	return n, nil
}

// event follows the session and passes the event on, before anybody gets a connection that has a
// session again.
func (n *connection) event(e zk.Event, onEvent func(zk.Event)) {
	session := e.Type == zk.EventSession
	n.mu.Lock()
	dropped := n.dropped
	if session && (e.State == zk.StateDisconnected || e.State == zk.StateExpired) && isClosed(n.up) {
		n.up, n.refused, n.misses = make(chan struct{}), make(chan struct{}), 0
	}
	n.mu.Unlock()
	if onEvent != nil && !dropped {
		onEvent(e)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if session && e.State == zk.StateHasSession && !isClosed(n.up) {
		close(n.up)
	}
}

func isClosed(ch chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// close ends the session, and returns when its goroutines have ended.
func (n *connection) close() {
	n.stop()
	n.mu.Lock()
	up, conn := isClosed(n.up), n.net
	n.mu.Unlock()
	if !up && conn != nil { // nobody would answer
		_ = conn.Close() // what it says changes nothing
	}
	n.conn.Close()
	<-n.done
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
	if ctx.Err() != nil && !errors.Is(err, errNoSession) {
		return nil, err
	}
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
