package testredis

import (
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy is a TCP network between a client and one server that a test can make
// slow, silent or broken. It is safe for concurrent use, and gone with all its
// connections and goroutines at the end of the test.
type Proxy struct {
	upstream string
	listener net.Listener
	wg       sync.WaitGroup

	accepted   atomic.Int64
	toServer   atomic.Int64
	toClient   atomic.Int64
	replies    atomic.Int64
	delayReply atomic.Int64 // nanoseconds
	delayAsk   atomic.Int64 // nanoseconds
	slice      atomic.Int64 // bytes; 0: whole
	bandwidth  atomic.Int64 // bytes per second and direction; 0: all there is

	mu       sync.Mutex
	cut      bool
	drop     bool
	dropAsks bool
	frozen   chan struct{} // closed when nothing is frozen
	cutAfter int           // replies still let through; -1: no cut armed
	links    map[*link]struct{}
	closed   bool
}

// NewProxy starts a proxy before upstream, host:port or the path of a socket. Give clients
// [Proxy.Addr] in place of the server's address; TLS passes through.
func NewProxy(t testing.TB, upstream string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("start proxy: %v", err)
	}
	flowing := make(chan struct{})
	close(flowing)
	p := &Proxy{
		upstream: upstream,
		listener: l,
		frozen:   flowing,
		cutAfter: -1,
		links:    make(map[*link]struct{}),
	}
	p.wg.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Addr returns the host:port where the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Cut breaks all connections with a reset and every new one likewise, until
// [Proxy.Heal]. What was under way is lost, in both directions.
func (p *Proxy) Cut() {
	p.mu.Lock()
	p.cut = true
	links := p.snapshot()
	p.mu.Unlock()
	for _, l := range links {
		l.reset()
	}
}

// Heal ends every fault: [Proxy.Cut], [Proxy.Freeze], [Proxy.DropReplies],
// [Proxy.DropRequests], delays, slices, a bandwidth and an armed
// [Proxy.CutAfterReplies]. A
// connection that lost anything is reset, since what it would get next belongs
// to another request.
func (p *Proxy) Heal() {
	p.Delay(0)
	p.DelayRequests(0)
	p.Slice(0)
	p.Bandwidth(0)
	p.Freeze(false)
	p.DropReplies(false)
	p.DropRequests(false)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut, p.cutAfter = false, -1
}

// Delay holds back what the server sends by d, order and throughput kept: the
// server has done what was asked, the client learns it late.
func (p *Proxy) Delay(d time.Duration) { p.delayReply.Store(int64(d)) }

// DelayRequests holds back what clients send by d: the server does late what
// was asked.
func (p *Proxy) DelayRequests(d time.Duration) { p.delayAsk.Store(int64(d)) }

// DropReplies throws away what the server sends while on: requests are
// executed and never answered, connections stay open. When it is turned off,
// connections that lost something are reset.
func (p *Proxy) DropReplies(on bool) {
	p.lose(&p.drop, on, func(l *link) bool { return l.lossy.Load() })
}

// DropRequests throws away what clients send while on: the server never hears
// of it, connections stay open. When it is turned off, connections that lost
// something are reset.
func (p *Proxy) DropRequests(on bool) {
	p.lose(&p.dropAsks, on, func(l *link) bool { return l.deaf.Load() })
}

// lose turns a loss on or off, and resets the connections that it hit when it
// ends.
func (p *Proxy) lose(what *bool, on bool, hit func(*link) bool) {
	p.mu.Lock()
	*what = on
	links := p.snapshot()
	p.mu.Unlock()
	if on {
		return
	}
	for _, l := range links {
		if hit(l) {
			l.reset()
		}
	}
}

// Slice passes everything on in packets of at most n bytes, in both directions;
// 0 ends that.
func (p *Proxy) Slice(n int) { p.slice.Store(int64(n)) }

// Bandwidth passes on at most n bytes a second on each connection and in each
// direction; 0 ends that.
func (p *Proxy) Bandwidth(n int) { p.bandwidth.Store(int64(n)) }

// Freeze stops all traffic in both directions while on, connections staying
// open, as in a network that loses every packet. What came meanwhile passes
// when it is turned off.
func (p *Proxy) Freeze(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.frozen:
		if on {
			p.frozen = make(chan struct{})
		}
	default:
		if !on {
			close(p.frozen)
		}
	}
}

// CutAfterReplies lets n more replies of the server through, over all
// connections, and ends the connection in place of the next one: the request
// was executed and the client cannot know. Once; connections made afterwards
// work. Pushes are no replies; replies to the handshake of a new connection
// are. Only without TLS.
func (p *Proxy) CutAfterReplies(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutAfter = max(n, 0)
}

// Accepted returns how many connections were made, refused ones included.
func (p *Proxy) Accepted() int { return int(p.accepted.Load()) }

// BytesToServer returns how many bytes were passed on to the server.
func (p *Proxy) BytesToServer() int64 { return p.toServer.Load() }

// BytesToClient returns how many bytes were passed on to clients.
func (p *Proxy) BytesToClient() int64 { return p.toClient.Load() }

// Replies returns how many replies the server gave, delivered or not; 0 under
// TLS.
func (p *Proxy) Replies() int { return int(p.replies.Load()) }

// Open returns how many connections are open.
func (p *Proxy) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.accepted.Add(1)
		p.wg.Go(func() { p.serve(conn) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	if p.refusing() {
		abort(client)
		return
	}
	network := "tcp"
	if strings.HasPrefix(p.upstream, "/") {
		network = "unix"
	}
	server, err := net.DialTimeout(network, p.upstream, 5*time.Second)
	if err != nil {
		abort(client)
		return
	}
	l := &link{proxy: p, client: client, server: server, done: make(chan struct{})}
	if !p.add(l) {
		l.reset()
		return
	}
	l.run()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// add registers a link unless the network was cut in the meantime.
func (p *Proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut || p.closed {
		return false
	}
	p.links[l] = struct{}{}
	return true
}

func (p *Proxy) refusing() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cut || p.closed
}

func (p *Proxy) dropping() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.drop
}

func (p *Proxy) droppingRequests() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dropAsks
}

func (p *Proxy) flowing() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.frozen
}

// admit takes n replies off an armed cut and returns how many may pass, and
// whether the connection is cut behind them.
func (p *Proxy) admit(n int) (pass int, cut bool) {
	p.replies.Add(int64(n))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cutAfter < 0 {
		return n, false
	}
	if n <= p.cutAfter {
		p.cutAfter -= n
		return n, false
	}
	pass, p.cutAfter = p.cutAfter, -1
	return pass, true
}

// snapshot needs mu.
func (p *Proxy) snapshot() []*link {
	links := make([]*link, 0, len(p.links))
	for l := range p.links {
		links = append(links, l)
	}
	return links
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	links := p.snapshot()
	p.mu.Unlock()
	// The listener was ours alone; an error would say only that it is closed.
	_ = p.listener.Close()
	for _, l := range links {
		l.reset()
	}
	p.wg.Wait()
}

// abort closes with a reset where the connection can.
func abort(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // Without it the close is an orderly one: no worse a cut.
	}
	if err := conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return // The peer was first; the connection is gone all the same.
	}
}
