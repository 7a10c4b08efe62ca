package respcheck

import (
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// errHeld is a look at the socket of a connection of which a part of a reply was read
// that nobody asked for.
var errHeld = errors.New("a part of a reply was read already")

// conn is a connection with a check on what is read.
type conn struct {
	net.Conn
	server string
	check  check

	held  [maxHead]byte // read, to be looked at with what follows
	nheld int
	ready []byte // to be handed on before anything is read
	room  [2 * maxHead]byte
	err   error // that came with what is ready

	bad atomic.Pointer[Error]
}

// direct is a conn over a socket, whose user may look at it.
type direct struct {
	*conn
	socket syscall.Conn
}

// New returns cn with a check on what comes from server, as which it is named in an
// [*Error]; of a reply at most so many bytes pass. One that has the check is returned as
// it is.
func New(cn net.Conn, server string, most int64) net.Conn {
	switch cn.(type) {
	case *conn, *direct:
		return cn
	}
	c := &conn{Conn: cn, server: server, check: check{most: min(most, MaxBytes)}}
	if socket, ok := cn.(syscall.Conn); ok {
		return &direct{conn: c, socket: socket}
	}
	return c
}

// NewSubscriber is [New] for a connection to which changed keys are pushed. The message of a flush names none: a null stands
// where the others have an array of names, which go-redis takes for an error. It passes as an empty array.
func NewSubscriber(cn net.Conn, server string) net.Conn {
	checked := New(cn, server, MaxBytes)
	switch c := checked.(type) {
	case *conn:
		c.check.noNulls = true
	case *direct:
		c.check.noNulls = true
	}
	return checked
}

// SyscallConn is that of syscall.Conn. go-redis looks there whether a connection
// of its pool has ended, or has something to read that nobody asked for.
func (c *direct) SyscallConn() (syscall.RawConn, error) {
	if c.nheld+len(c.ready) > 0 {
		return nil, errHeld
	}
	return c.socket.SyscallConn()
}

// NetConn returns the connection beneath TLS, nil where there is none to be had.
func (c *conn) NetConn() net.Conn {
	if over, ok := c.Conn.(interface{ NetConn() net.Conn }); ok {
		return over.NetConn()
	}
	return nil
}

// Read is that of net.Conn. It waits until something passes.
func (c *conn) Read(p []byte) (int, error) {
	for len(p) > 0 {
		if len(c.ready) > 0 {
			n := copy(p, c.ready)
			c.ready = c.ready[n:]
			return n, nil
		}
		if bad := c.bad.Load(); bad != nil {
			return 0, bad
		}
		if err := c.err; err != nil {
			c.err = nil // a deadline may be moved
			return 0, err
		}
		n, err := c.read(p)
		if n > 0 || err != nil {
			return n, err
		}
	}
	return c.Conn.Read(p)
}

// read reads once, and returns how much of it is in p. There may be more that is ready.
func (c *conn) read(p []byte) (int, error) {
	b := p
	small := len(p) <= c.nheld // for what is held and one byte more
	if small {
		b = c.room[:c.nheld+len(p)]
	}
	copy(b, c.held[:c.nheld])
	n, err := c.Conn.Read(b[c.nheld:])
	if n == 0 {
		return 0, err
	}
	b = b[:c.nheld+n]
	kept, held, long, wrong := c.check.feed(b)
	c.nheld = copy(c.held[:], b[len(b)-held:])
	if small {
		c.ready = append(b[:kept:kept], long...)
		kept = copy(p, c.ready)
		c.ready = c.ready[kept:]
	} else {
		c.ready = long
	}
	if wrong != "" {
		c.refuse(wrong)
		err = nil
	}
	if len(c.ready) > 0 {
		c.err, err = err, nil
	}
	return kept, err
}

// refuse closes the connection for what the server sent.
func (c *conn) refuse(wrong string) {
	c.bad.Store(&Error{Server: c.server, What: wrong})
	// TLS would say goodbye to a server that may not read it. What closing says tells
	// nobody anything.
	if raw := c.NetConn(); raw != nil {
		_ = raw.Close()
		return
	}
	_ = c.Conn.Close()
}

// why is the reason of an error of a connection that was closed for what the server
// sent, and any other error as it is.
func (c *conn) why(err error) error {
	if bad := c.bad.Load(); bad != nil && err != nil {
		return bad
	}
	return err
}

// Write is that of net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	return n, c.why(err)
}

// SetDeadline is that of net.Conn.
func (c *conn) SetDeadline(t time.Time) error { return c.why(c.Conn.SetDeadline(t)) }

// SetReadDeadline is that of net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error { return c.why(c.Conn.SetReadDeadline(t)) }

// SetWriteDeadline is that of net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error { return c.why(c.Conn.SetWriteDeadline(t)) }
