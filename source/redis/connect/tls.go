package connect

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"
)

// handshakeError is a TLS handshake that failed, which [Explain] tells apart
// from a server that does not answer at all.
type handshakeError struct{ err error }

func (e *handshakeError) Error() string { return "tls handshake: " + e.err.Error() }
func (e *handshakeError) Unwrap() error { return e.err }

// handshake speaks TLS over raw, and closes it when that fails. The server's
// certificate must be for the host that is dialed, or for what the configuration
// names. The files count as they are now.
func (c *Conn) handshake(ctx context.Context, raw net.Conn, addr string) (net.Conn, error) {
	name, _, err := net.SplitHostPort(addr)
	if c.cfg.ServerName != "" {
		name = c.cfg.ServerName
	}
	if err == nil {
		cn := tls.Client(raw, c.creds.tls.Client(name, c.creds.min))
		if err = cn.HandshakeContext(ctx); err == nil {
			c.ends.note(addr, cn.ConnectionState())
			return &tlsConn{Conn: cn}, nil
		}
	}
	// A handshake that took too long has closed it already.
	if closed := raw.Close(); !errors.Is(closed, net.ErrClosed) {
		err = errors.Join(err, closed)
	}
	return nil, &handshakeError{err: err}
}

// ends are when the certificates of servers end, by the address that was dialed.
type ends struct {
	mu sync.Mutex
	by map[string]serverEnd
}

type serverEnd struct{ seen, end time.Time }

func (e *ends) note(addr string, state tls.ConnectionState) {
	if len(state.PeerCertificates) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.by == nil {
		e.by = map[string]serverEnd{}
	}
	now := time.Now()
	e.by[addr] = serverEnd{now, state.PeerCertificates[0].NotAfter}
	for addr, s := range e.by {
		if now.Sub(s.seen) > 24*time.Hour {
			delete(e.by, addr) // a server that is there no more
		}
	}
}

// ServerCertificateEnds returns when the first of the certificates ends that the
// target's servers showed to the newest connections; false without any.
func (c *Conn) ServerCertificateEnds() (time.Time, bool) {
	c.ends.mu.Lock()
	defer c.ends.mu.Unlock()
	var first time.Time
	for _, s := range c.ends.by {
		if first.IsZero() || s.end.Before(first) {
			first = s.end
		}
	}
	return first, !first.IsZero()
}

// maxLifetime is how long a pooled connection with TLS is used: then it makes
// place for one with the certificates of today.
const maxLifetime = 30 * time.Minute

// lifetime is for the pools; 0 is no limit.
func (c *Conn) lifetime() time.Duration {
	if c.spec.TLS {
		return maxLifetime
	}
	return 0
}

// renewal is a connection that is meant to stay for ever and ends in order before
// the certificate does that it was made with, if there is a later one by then: its
// user makes another.
type renewal struct {
	net.Conn
	c   *Conn
	end time.Time // of the certificate

	mu    sync.Mutex
	timer *time.Timer
}

// renewing makes a renewal of a connection with a client certificate, and of no
// other.
func (c *Conn) renewing(cn net.Conn, err error) (net.Conn, error) {
	if _, isTLS := cn.(*tlsConn); err != nil || !isTLS || c.creds.tls.Pair == nil {
		return cn, err
	}
	r := &renewal{Conn: cn, c: c, end: c.creds.tls.Pair.Certificate().Leaf.NotAfter}
	left := time.Until(r.end)
	if left <= 0 {
		return cn, nil // it is over: there is none to wait for
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.timer = time.AfterFunc(left-renewBefore(left), r.look)
	return r, nil
}

// renewBefore is how long before the end of a certificate that lasts for left a
// later one is asked for.
func renewBefore(left time.Duration) time.Duration { return min(left/4, 24*time.Hour) }

func (r *renewal) look() {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := time.Until(r.end)
	switch {
	case r.timer == nil: // closed
	case r.c.creds.tls.Pair.Certificate().Leaf.NotAfter.After(r.end):
		// Readers and writers see the end and dial again.
		_ = r.Conn.Close()
	case left > 0:
		r.timer.Reset(max(left/20, 200*time.Millisecond))
	}
}

// Close ends the connection and the wait.
func (r *renewal) Close() error {
	r.mu.Lock()
	if r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
	r.mu.Unlock()
	return r.Conn.Close()
}
