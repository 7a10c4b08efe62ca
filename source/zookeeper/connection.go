package zksource

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

const (
	dialTimeout = 3 * time.Second // for the TLS handshake, too
	// maxPacket bounds an answer of a server: the names of about a million children.
	maxPacket = 64 << 20
	// maxRequest bounds what we send: the library sends the watches of 128 kB of paths at a time.
	maxRequest = 256 << 10
)

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
