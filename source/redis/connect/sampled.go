package connect

import (
	"net"
	"sync"
	"time"
)

const (
	// sampleEvery is how often a busy connection is read.
	sampleEvery = 10 * time.Millisecond
	// sampleAtOnce is how many reads a connection has ahead that was quiet: each is
	// made as soon as there is something.
	sampleAtOnce = 8
	// sampleSize is how much is read at once. Who finds so much reads on without a
	// pause: it is not to fall behind.
	sampleSize = 16 << 10
)

// sampled is a connection on which a server reports many small things, each in a
// packet of its own. While they come thick it is read about a hundred times a second,
// unless a read finds it full: nobody waits for the single packet then, so that the
// server, which is busy sending it, does not wake a process with each. It is beneath
// TLS: above, each record would be a read of its own. Like any connection it has one
// reader at a time.
type sampled struct {
	net.Conn
	room []byte
	rest []byte // read, and not yet handed on
	err  error  // that came with it
	// due is the next read's turn. It lies up to sampleAtOnce turns back: those are
	// made without a wait.
	due  time.Time
	full bool // the last read had more behind it, perhaps

	closed chan struct{}
	close  sync.Once
}

func newSampled(cn net.Conn) net.Conn {
	return &sampled{Conn: cn, room: make([]byte, sampleSize), closed: make(chan struct{})}
}

// Read waits for up to [sampleEvery] longer than the connection itself. A deadline
// that passes meanwhile counts afterwards, even if there is something to read.
func (s *sampled) Read(p []byte) (int, error) {
	if len(s.rest) == 0 && s.err == nil {
		s.pause()
		n, err := s.Conn.Read(s.room)
		s.rest, s.err, s.full = s.room[:n], err, n == len(s.room)
	}
	if len(s.rest) == 0 {
		err := s.err
		s.err = nil // a deadline may be moved
		return 0, err
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// pause waits for the next read's turn.
func (s *sampled) pause() {
	if s.full {
		return
	}
	now := time.Now()
	if ahead := now.Add(-sampleAtOnce * sampleEvery); s.due.Before(ahead) {
		s.due = ahead
	}
	if wait := s.due.Sub(now); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-s.closed:
		}
	}
	s.due = s.due.Add(sampleEvery)
}

// Close ends the connection, and a wait for a read's turn.
func (s *sampled) Close() error {
	s.close.Do(func() { close(s.closed) })
	return s.Conn.Close()
}
