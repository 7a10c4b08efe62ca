package scanner_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/pace"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// name is an address that can be made to lead to another server.
type name struct {
	listener net.Listener
	group    sync.WaitGroup

	mu   sync.Mutex
	to   string
	open []net.Conn
}

func newName(t *testing.T, to string) *name {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	n := &name{listener: l, to: to}
	n.group.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n.group.Go(func() { n.relay(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		n.lead("")
		n.group.Wait()
	})
	return n
}

func (n *name) relay(client net.Conn) {
	defer client.Close()
	n.mu.Lock()
	to := n.to
	n.mu.Unlock()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	n.mu.Lock()
	if n.to != to {
		n.mu.Unlock()
		return
	}
	n.open = append(n.open, client, server)
	n.mu.Unlock()
	var back sync.WaitGroup
	back.Go(func() { _, _ = io.Copy(client, server); _ = client.Close() })
	_, _ = io.Copy(server, client)
	_ = server.Close()
	back.Wait()
}

// lead makes the name lead to another server, and ends what leads to the old one.
func (n *name) lead(to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.to = to
	for _, c := range n.open {
		_ = c.Close()
	}
	n.open = nil
}

// A name leads to another server from one moment to the next: what was known of
// the old one is given up, nothing of it counts as released, the change is reported,
// and verdicts of death wait.
// fault: 26
func TestNameLeadsToAnotherServer(t *testing.T) {
	t.Parallel()
	one, two := testredis.Start(t), testredis.Start(t)
	must(t, one.Client(t).Set(t.Context(), "lock:one", "tok", time.Hour).Err())
	must(t, two.Client(t).Set(t.Context(), "lock:two", "tok", time.Hour).Err())
	n := newName(t, one.Addr())
	w := tracked(t, fast("redis://"+n.listener.Addr().String()+"/0"))
	e, err := rules.New(nil, nil, nil)
	must(t, err)
	before := judged(t, w.s, e)
	find(t, before.Locks, "lock:one")
	n.lead(two.Addr())
	w.awaitState("set up again, and blind meanwhile", func(s source.WatchState) bool { return whole(s) && s.Blind > 0 })
	got := judged(t, w.s, e)
	find(t, got.Locks, "lock:two")
	if len(got.Locks) != 1 || got.Nodes[0].RunID == before.Nodes[0].RunID {
		t.Errorf("after the change: %q, run id %s", names(got.Locks), got.Nodes[0].RunID)
	}
	if how := append(w.ended("lock:one"), ending(got, "lock:one")); how[0] == locksteward.EndedReleased {
		t.Errorf("the lock of the other server ended %v", how)
	}
	if reported := firing(e); !strings.Contains(reported, "server/failover") && !strings.Contains(reported, "server/restarted") {
		t.Errorf("firing: %q", reported)
	}
	if _, why, paused := e.Paused("test", got.At); !paused {
		t.Errorf("verdicts do not pause: %s", why)
	}
	w.audit()
}

// Connections stay open and carry nothing, from the moment at which the watch has just
// found them good, which is the worst: it knows within its check and the 1.8 s that an
// answer may take, closes both, and where new ones work it has everything again at once.
// fault: 18
func TestWatchNoticesSilence(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	// After its first good check, and then every 10 s, the watch asks for these on a
	// connection of the pool.
	line := newDeadLine(t, srv.Addr(), "commandstats", false)
	r := fast("redis://" + line.listener.Addr().String() + "/0")
	// The default: a shorter one would end the wait before the watch itself does.
	r.connect.ReadTimeout = connect.DefaultReadTimeout
	w := tracked(t, r)
	w.taken(c, "lock:ends")
	since := w.s.WatchState().Nodes[0].Since
	line.arm()
	testredis.Eventually(t, soon, func() bool { return !line.died().IsZero() }, "the line does not die")
	// 1 s between checks and 1.8 s for an answer: two timers, which a busy machine makes
	// late. How late is reported by two of our own that run beside them.
	silent := line.died()
	const most = 2800 * time.Millisecond
	timers := make(chan time.Duration, 1)
	go func() {
		<-time.After(time.Second - time.Since(silent))
		<-time.After(1800 * time.Millisecond)
		timers <- time.Since(silent)
	}()
	// The lock goes, and another comes, while nobody can report them.
	must(t, c.Del(t.Context(), "lock:ends").Err())
	must(t, c.Set(t.Context(), "lock:begins", "tok", 0).Err())
	w.awaitState("not believed any more", func(s source.WatchState) bool {
		return s.Mode == source.WatchSweep || s.Nodes[0].Since.After(since)
	})
	took := time.Since(silent)
	late := <-timers - most
	t.Logf("noticed after %s; timers were late by %s", took, late)
	// And once around the loops of the watch and of this test.
	if took > min(most+late+200*time.Millisecond, 5*time.Second) {
		t.Errorf("noticed after %s, want %s at most, and %s for late timers", took, most, late)
	}
	// Those that had no word for it are closed, not left for the server to keep.
	testredis.Eventually(t, soon, func() bool { return line.closed() >= 2 }, "the silent connections are not closed")
	w.awaitState("set up again, and blind meanwhile", func(s source.WatchState) bool { return whole(s) && s.Blind >= time.Second })
	w.awaitEnd("lock:ends", 1)
	find(t, sweep(t, w.s).Locks, "lock:begins")
	w.audit()
}

// A server that stalls for less than an answer may take is not taken for dead, at
// whatever moment it begins.
// fault: 18
func TestWatchBearsAStall(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	w := tracked(t, fast(srv.URL()))
	for round := range 3 {
		before, began := w.s.WatchState(), time.Now()
		srv.Pause()
		pause(t.Context(), time.Second)
		srv.Resume()
		must(t, c.Ping(t.Context()).Err()) // it may stand for a moment longer
		if time.Since(began) > 1500*time.Millisecond {
			continue // this machine stalls itself
		}
		w.awaitState("checked again", func(s source.WatchState) bool {
			return whole(s) && s.Nodes[0].LastGood.After(before.Nodes[0].LastGood)
		})
		if s := w.s.WatchState(); s.Blind != before.Blind || !s.Nodes[0].Since.Equal(before.Nodes[0].Since) {
			t.Errorf("it was taken for dead: %+v", s)
		}
		w.taken(c, fmt.Sprint("lock:", round))
	}
	w.audit()
}

// A connection goes dead under a sweep: what changes meanwhile is reported, by those that are
// left, and waits for nothing. That is what a pool of more than one is for.
// fault: 18
func TestHungSweepHoldsNothingUp(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	line := newDeadLine(t, srv.Addr(), "scan", true)
	r := fast("redis://" + line.listener.Addr().String() + "/0")
	r.connect.ReadTimeout = connect.DefaultReadTimeout
	w := tracked(t, r)
	sweep(t, w.s)
	line.arm()
	swept := make(chan time.Time, 1)
	go func() {
		_, _ = w.s.Sweep(t.Context()) // it asks again on another connection
		swept <- time.Now()
	}()
	testredis.Eventually(t, soon, func() bool { return !line.died().IsZero() }, "the line does not die")
	w.taken(c, "lock:meanwhile")
	took, reported := time.Since(line.died()), time.Now()
	t.Logf("reported %s after the connection was dead", took)
	if ended := <-swept; !reported.Before(ended) {
		t.Errorf("reported %s after the sweep had ended", reported.Sub(ended))
	}
	w.audit()
}

// deadLine is a network before a server in which connections go dead when a client asks
// for something: they stay open and carry nothing more, as where a router has forgotten
// them. Those that are made afterwards work.
type deadLine struct {
	listener net.Listener
	word     []byte
	alone    bool // the one that asked goes dead; else all that are open do
	group    sync.WaitGroup

	mu    sync.Mutex
	open  []net.Conn
	armed bool
	dead  time.Time
	left  int // dead connections that the client has closed
}

// wire is one connection of a deadLine.
type wire struct {
	began time.Time
	dead  atomic.Bool
}

func newDeadLine(t *testing.T, to, word string, alone bool) *deadLine {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	d := &deadLine{listener: l, word: []byte(word), alone: alone}
	d.group.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				_ = client.Close()
				continue
			}
			over := &wire{began: time.Now()}
			d.mu.Lock()
			d.open = append(d.open, client, server)
			d.mu.Unlock()
			d.group.Go(func() {
				d.carry(client, server, over)
				_ = server.Close()
				if d.isDead(over) {
					d.mu.Lock()
					d.left++
					d.mu.Unlock()
				}
			})
			d.group.Go(func() {
				d.carry(server, client, over)
				if !d.isDead(over) {
					_ = client.Close()
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		d.mu.Lock()
		for _, c := range d.open {
			_ = c.Close()
		}
		d.mu.Unlock()
		d.group.Wait()
	})
	return d
}

// carry passes on what comes until the connection is dead; then it swallows that.
func (d *deadLine) carry(from, to net.Conn, over *wire) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if bytes.Contains(buf[:n], d.word) {
			d.mu.Lock()
			if d.armed && d.dead.IsZero() {
				d.dead = time.Now()
				over.dead.Store(true)
			}
			d.mu.Unlock()
		}
		if !d.isDead(over) {
			_, _ = to.Write(buf[:n])
		}
	}
}

// arm has the line go dead with the next word.
func (d *deadLine) arm() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.armed = true
}

func (d *deadLine) died() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dead
}

func (d *deadLine) isDead(w *wire) bool {
	at := d.died()
	return w.dead.Load() || !d.alone && !at.IsZero() && w.began.Before(at)
}

func (d *deadLine) closed() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.left
}

// The server is refused for a while, then each connection breaks again and again:
// the agent, with sweeps and watch, dials ten times a second at most, and has no
// more connections afterwards than before.
// fault: 24
func TestAgentDialsWithPauses(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	proxy := testredis.NewProxy(t, srv.Addr())
	r := fast("redis://" + proxy.Addr() + "/0")
	r.scan.Schedule = "@every 1s"
	w := tracked(t, r)
	run := start(t, w.s)
	run.await(t, "before", complete)
	quiet := proxy.Open()
	const spell = 3 * time.Second
	before, began := proxy.Accepted(), time.Now()
	proxy.Cut()
	testredis.Eventually(t, 2*spell, func() bool { return time.Since(began) > spell }, "a while")
	dials := proxy.Accepted() - before
	if most := int(10 * spell / time.Second); dials > most {
		t.Errorf("%d dials in %s, want at most %d", dials, spell, most)
	}
	t.Logf("%d dials in %s while nothing answers", dials, spell)
	proxy.Heal()
	before, began = proxy.Accepted(), time.Now()
	resets := 0
	for ; time.Since(began) < spell; resets++ {
		proxy.Cut()
		proxy.Heal()
		<-time.After(30 * time.Millisecond)
	}
	dials = proxy.Accepted() - before
	if most := int(10 * spell / time.Second); dials > most {
		t.Errorf("%d dials for %d resets in %s, want at most %d", dials, resets, spell, most)
	}
	t.Logf("%d dials for %d resets in %s", dials, resets, spell)
	w.awaitState("set up again", whole)
	run.await(t, "after", complete)
	testredis.Eventually(t, 10*time.Second, func() bool { return proxy.Open() <= quiet+2 }, "connections are left over")
	w.audit()
}

// Somebody's slow commands make every answer late: the sweep gives way within a
// second and says that it is the latency. On a busy machine it may need more; it does
// so once in five times.
// fault: 23
func TestSlowCommandsThrottleTheSweep(t *testing.T) {
	t.Parallel()
	best := time.Hour
	for range 5 {
		took := gaveWay(t)
		t.Logf("gave way after %s", took)
		if best = min(best, took); best <= time.Second {
			return
		}
	}
	t.Errorf("gave way after %s at best", best)
}

// gaveWay is how long a sweep goes on as it did beside slow commands.
func gaveWay(t *testing.T) time.Duration {
	t.Helper()
	srv := testredis.Start(t, testredis.WithConfig("enable-debug-command yes"))
	c := srv.Client(t)
	fill(t, c, 400_000)
	r := slow(srv.URL())
	r.scan.Pace = pace.Config{Idle: 0.04, Busy: 0.005} // some ten seconds when nothing is in the way
	s := r.build(t)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = s.Sweep(ctx) }) // ended by the test, and then incomplete
	defer wg.Wait()
	defer stop()
	testredis.Eventually(t, 10*time.Second, func() bool { return scans(t, c) >= 3 }, "the sweep does not begin")
	o := srv.Options()
	sleeper := redis.NewClient(o)
	defer sleeper.Close()
	began := time.Now()
	wg.Go(func() {
		for ctx.Err() == nil {
			_ = sleeper.Do(ctx, "DEBUG", "SLEEP", "0.02").Err() // its end ends it
		}
	})
	testredis.Eventually(t, 10*time.Second, func() bool { return s.Stats().Throttled[source.Reason(pace.Delayed)] > 0 }, "the sweep does not give way")
	return time.Since(began)
}
