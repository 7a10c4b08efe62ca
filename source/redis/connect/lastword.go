package connect

import (
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"time"
)

// lastWordWithin is how long the reason of a server that closed the connection is
// waited for. It has come already, or does not come.
const lastWordWithin = time.Second

// tlsConn is a connection with TLS that says why the server ended it. With TLS 1.3 a
// client's handshake is over before the server has looked at its certificate: the
// refusal comes when the client writes already. The writer learns that the connection
// was reset, and why lies unread.
type tlsConn struct {
	*tls.Conn
	// received says that something was read: the server has taken the certificate.
	received atomic.Bool
}

// Read is that of net.Conn.
func (c *tlsConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.received.Store(true)
	}
	return n, err
}

// Write is that of net.Conn. Of a connection that the server closed before it answered
// anything the error is the reason.
func (c *tlsConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err == nil || c.received.Load() || errors.Is(err, net.ErrClosed) {
		return n, err
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return n, err
	}
	// Nobody can use this connection any more: what is read is missed by none.
	if c.SetReadDeadline(time.Now().Add(lastWordWithin)) == nil {
		if _, word := c.Conn.Read(make([]byte, 1)); saysWhy(word) {
			return n, &handshakeError{err: word}
		}
	}
	return n, err
}

// saysWhy says whether an error is what the server said before it closed a connection.
func saysWhy(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error"
}
