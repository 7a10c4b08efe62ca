package testredis

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// link is one connection through a [Proxy]: for each direction one goroutine
// that reads and one that writes what is due.
type link struct {
	proxy  *Proxy
	client net.Conn
	server net.Conn
	lossy  atomic.Bool // replies were dropped: never deliver again
	deaf   atomic.Bool // requests were dropped: never deliver again

	once sync.Once
	done chan struct{}
}

// chunk is what one read gave, and when.
type chunk struct {
	data []byte
	at   time.Time
	last bool // end the link behind it
}

// run carries data until either side ends.
func (l *link) run() {
	asks, replies := make(chan chunk, 64), make(chan chunk, 64)
	var wg sync.WaitGroup
	wg.Go(func() { l.read(l.client, asks, nil) })
	wg.Go(func() { l.read(l.server, replies, new(replyCounter)) })
	wg.Go(func() { l.write(l.server, asks, &l.proxy.delayAsk, &l.proxy.toServer) })
	wg.Go(func() { l.write(l.client, replies, &l.proxy.delayReply, &l.proxy.toClient) })
	wg.Wait()
	l.reset()
}

// reset ends the link at once, both sides seeing a reset.
func (l *link) reset() {
	l.once.Do(func() {
		close(l.done)
		abort(l.client)
		abort(l.server)
	})
}

// finish ends the link behind what was written: a reset could overtake it.
func (l *link) finish() {
	l.once.Do(func() {
		close(l.done)
		// Both are being thrown away; that one of them is gone is no news.
		_ = l.client.Close()
		abort(l.server)
	})
}

// read passes on what conn sends. With a counter conn is the server.
func (l *link) read(conn net.Conn, out chan<- chunk, counter *replyCounter) {
	defer close(out)
	buf := make([]byte, 32<<10)
	for {
		n, err := conn.Read(buf)
		if n > 0 {
			c := chunk{data: append([]byte(nil), buf[:n]...), at: time.Now()}
			if counter != nil {
				c = l.judge(c, counter)
			} else if l.ignores() {
				c.data = nil
			}
			select {
			case out <- c:
			case <-l.done:
				return
			}
			if c.last {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// ignores says that requests are thrown away.
func (l *link) ignores() bool {
	if l.proxy.droppingRequests() {
		l.deaf.Store(true)
	}
	return l.deaf.Load()
}

// judge takes from a chunk of the server what the proxy lets through.
func (l *link) judge(c chunk, counter *replyCounter) chunk {
	if l.proxy.dropping() {
		l.lossy.Store(true)
	}
	ends := counter.feed(c.data)
	pass, cut := l.proxy.admit(len(ends))
	if cut {
		c.last = true
		if pass == 0 {
			c.data = nil
		} else {
			c.data = c.data[:ends[pass-1]]
		}
	}
	if l.lossy.Load() {
		c.data = nil
	}
	return c
}

// write sends each chunk when it is due. An orderly end of the reading side is
// passed on behind the last chunk.
func (l *link) write(conn net.Conn, in <-chan chunk, delay, count *atomic.Int64) {
	for {
		var c chunk
		var ok bool
		select {
		case c, ok = <-in:
		case <-l.done:
			return
		}
		if !ok {
			break
		}
		if !l.wait(time.Until(c.at.Add(time.Duration(delay.Load())))) {
			return
		}
		if len(c.data) > 0 {
			// Counted before, so that who got a reply finds it counted.
			count.Add(int64(len(c.data)))
			if err := l.send(conn, c.data); err != nil {
				l.reset()
				return
			}
		}
		if c.last {
			l.finish()
			return
		}
	}
	if tcp, ok := conn.(*net.TCPConn); !ok || tcp.CloseWrite() != nil {
		l.reset()
	}
}

// send writes data, in slices where the proxy wants them. Each is a packet of its
// own: connections of Go send at once.
func (l *link) send(conn net.Conn, data []byte) error {
	for len(data) > 0 {
		n := len(data)
		if most := int(l.proxy.slice.Load()); most > 0 {
			n = min(n, most)
		}
		if rate := int(l.proxy.bandwidth.Load()); rate > 0 {
			n = min(n, max(1, rate/20))
			if !l.wait(time.Duration(n) * time.Second / time.Duration(rate)) {
				return net.ErrClosed
			}
		}
		if _, err := conn.Write(data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// wait returns false when the link ends before d has passed and the traffic
// flows.
func (l *link) wait(d time.Duration) bool {
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.done:
			return false
		}
	}
	select {
	case <-l.proxy.flowing():
		return true
	case <-l.done:
		return false
	}
}
