package scanner_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source"
)

// A server that cannot save refuses PING as if it were a write: it is watched all
// the same, and what it says is not taken for the end of the connection.
// fault: 44
func TestWatchOfAServerThatCannotSave(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t, testredis.WithConfig("enable-protected-configs yes"))
	c := srv.Client(t)
	ctx := t.Context()
	w := tracked(t, fast(srv.URL()))
	must(t, c.Set(ctx, "lock:a", "tok", 3*time.Second).Err())
	w.awaitLock("lock:a")
	must(t, c.Do(ctx, "config", "set", "save", "3600 1", "dir", "/proc").Err())
	_ = c.BgSave(ctx).Err()
	testredis.Eventually(t, 10*time.Second, func() bool { return redis.HasErrorPrefix(c.Ping(ctx).Err(), "MISCONF") }, "no MISCONF")
	since := w.s.WatchState().Nodes[0].Since
	checked := func(what string) {
		t.Helper()
		began := time.Now()
		w.awaitState(what, func(s source.WatchState) bool { return whole(s) && s.Nodes[0].LastGood.After(began) })
	}
	checked("good without PING")
	checked("good again")
	if s := w.s.WatchState(); !s.Nodes[0].Since.Equal(since) || s.Blind != 0 {
		t.Errorf("it was set up again: %+v", s)
	}
	w.awaitEnd("lock:a", 1) // expiry is no write of a client
	must(t, c.Do(ctx, "config", "set", "save", "").Err())
	w.taken(c, "lock:after")
	w.audit()
}

// A flush takes locks and what stands beside them: each of ours that stood is lost,
// and none that was released before.
// fault: 48
func TestFlushLosesWhatStood(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	heartbeat(t, c, "i1")
	w := tracked(t, fast(srv.URL()))
	const locks = 20
	for i := range locks {
		key := fmt.Sprint("lock:", i)
		take(t, c, key, record.Meta{ID: fmt.Sprint("id", i), Instance: "i1"}, time.Hour)
		w.awaitLock(key)
	}
	w.taken(c, "lock:foreign")
	release(t, c, "lock:0")
	w.awaitEnd("lock:0", 1)
	w.awaitClock()
	must(t, c.FlushAll(t.Context()).Err())
	for i := range locks {
		w.awaitEnd(fmt.Sprint("lock:", i), 1)
	}
	w.awaitEnd("lock:foreign", 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	lost := map[string]bool{}
	for _, l := range w.losses {
		if l.How != locksteward.EndedDeleted || l.Holder.Instance != "i1" || l.Class != class.Default || l.Deadline.Before(l.At) {
			t.Errorf("loss %+v", l)
		}
		lost[l.Key] = true
	}
	if len(lost) != locks-1 || len(w.losses) != locks-1 || lost["lock:0"] {
		t.Errorf("%d losses of %d locks that stood", len(w.losses), locks-1)
	}
	// Sweeps repeat it, with what they know of the process by then.
	heartbeat(t, c, "i1")
	for range 2 {
		got := sweep(t, w.s)
		if len(got.Losses) != locks-1 || len(got.Endings) != 0 || got.Losses[0].Instance == nil {
			t.Errorf("a sweep reports %d losses and %d endings", len(got.Losses), len(got.Endings))
		}
	}
	for _, e := range w.endings {
		if want := e.Lock.Key != "lock:0"; (e.How == locksteward.EndedDeleted) != want && e.Lock.Key != "lock:foreign" {
			t.Errorf("%s ended %s", e.Lock.Key, e.How)
		}
	}
}

// What others do to locks of ours: each time the hold that was is over, what stands
// there now is another, and no copy passes for the original.
// fault: 49
func TestOthersMoveAndCopyLocks(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	ctx := t.Context()
	heartbeat(t, c, "i1")
	w := tracked(t, fast(srv.URL()))
	ours := func(key, id string) {
		t.Helper()
		take(t, c, key, record.Meta{ID: id, Instance: "i1"}, time.Minute)
		w.await(key, "held as "+id, func(l locksteward.Lock) bool { return l.Claim != nil && l.Claim.ID == id })
	}
	loss := func(key, id string) {
		t.Helper()
		testredis.Eventually(t, soon, func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, l := range w.losses {
				if l.Key == key && l.Claim.ID == id {
					return true
				}
			}
			return false
		}, "the loss of "+id+" is not reported")
	}
	ours("lock:moved", "a1")
	must(t, c.Rename(ctx, "lock:moved", "lock:elsewhere").Err())
	w.awaitEnd("lock:moved", 1)
	loss("lock:moved", "a1")
	w.await("lock:elsewhere", "held, by nobody that is known", func(l locksteward.Lock) bool { return l.Claim == nil && l.Fence == 0 })

	ours("lock:under", "b1")
	must(t, c.Set(ctx, "lock:over", "somebody", time.Minute).Err())
	w.awaitLock("lock:over")
	must(t, c.Rename(ctx, "lock:over", "lock:under").Err())
	loss("lock:under", "b1")
	w.await("lock:under", "another's", func(l locksteward.Lock) bool { return l.Claim == nil })

	ours("lock:original", "c1")
	must(t, c.Copy(ctx, "lock:original", "lock:copy", 0, false).Err())
	w.await("lock:copy", "held, without the claim of its original", func(l locksteward.Lock) bool { return l.Claim == nil })
	if l, ok := w.lock("lock:original"); !ok || l.Claim == nil || l.Claim.ID != "c1" {
		t.Errorf("the original: %+v", l.Claim)
	}

	ours("lock:restored", "d1")
	dump, err := c.Dump(ctx, "lock:restored").Result()
	must(t, err)
	release(t, c, "lock:restored")
	w.awaitEnd("lock:restored", 1)
	must(t, c.Restore(ctx, "lock:restored", time.Minute, dump).Err())
	w.await("lock:restored", "back without its metadata", func(l locksteward.Lock) bool { return l.Claim == nil })

	// And what a third party does to the TTL is seen within a second.
	// On a busy machine that may take more; it does not in one of five times.
	ours("lock:ttl", "e1")
	best := time.Hour
	for range 5 {
		began := time.Now()
		must(t, c.Persist(ctx, "lock:ttl").Err())
		w.await("lock:ttl", "no TTL", func(l locksteward.Lock) bool { return l.TTL == locksteward.NoExpiry })
		if best = min(best, time.Since(began)); best <= time.Second {
			break
		}
		must(t, c.PExpire(ctx, "lock:ttl", time.Minute).Err())
		w.await("lock:ttl", "a TTL", func(l locksteward.Lock) bool { return l.TTL > 0 })
	}
	if best > time.Second {
		t.Errorf("a lock without TTL is seen after %s at best", best)
	}
	must(t, c.PExpire(ctx, "lock:ttl", 300*time.Millisecond).Err())
	w.awaitEnd("lock:ttl", 1)
	loss("lock:ttl", "e1")
	w.audit()
}

// A server that changes its name, crashes and comes back, a hundred times, most of them
// at once (DEBUG CRASH-AND-RECOVER) and some as a process that died: the watch is set up
// again, and sees what is taken afterwards.
// fault: 50
func TestServerThatCrashesOverAndOver(t *testing.T) {
	t.Parallel()
	sinceTracking(t)
	// Other tests run meanwhile: the goroutines of this one bear its name.
	pprof.SetGoroutineLabels(pprof.WithLabels(t.Context(), pprof.Labels("test", t.Name())))
	srv := testredis.Start(t, crashSettings(t)...)
	// Nothing is asked twice: a crash is one crash. After as many failed dials as the pool
	// is large go-redis would pause for a second.
	o := srv.Options()
	o.MaxRetries, o.DialerRetries, o.PoolSize = -1, 1, 10_000
	c := redis.NewClient(o)
	defer c.Close()
	ctx := t.Context()
	w := tracked(t, fast(srv.URL()))
	run := start(t, w.s)
	run.await(t, "at once", complete)
	sees := func(what string, round int) {
		t.Helper()
		key := fmt.Sprintf("lock:%s:%d", what, round)
		testredis.Eventually(t, soon, func() bool { return c.Set(ctx, key, "tok", time.Hour).Err() == nil }, "no write after "+what)
		w.awaitLock(key)
	}
	process := func() string { return infoLine(c.Info(ctx, "server").Val(), "run_id:") }
	before := goroutinesOf(t)
	crashes, lasted := map[string]int{}, map[string]time.Duration{}
	for round := range 100 {
		must(t, c.Do(ctx, "debug", "change-repl-id").Err())
		was, blind := process(), w.s.WatchState().Blind
		how, began := "crash-and-recover", time.Now()
		if round%10 == 9 || !testredis.Reexecutes() {
			how = "segfault"
		}
		_ = c.Do(ctx, "debug", how).Err() // no answer comes
		if how == "segfault" {
			srv.Restart()
		}
		testredis.Eventually(t, soon, func() bool { is := process(); return is != "" && is != was }, "the server did not crash by "+how)
		back := time.Now()
		lasted[how] += back.Sub(began)
		crashes[how]++
		if round%25 == 24 { // after one of either kind, twice
			w.awaitState("set up again", func(s source.WatchState) bool {
				return whole(s) && s.Nodes[0].Since.After(back) && s.Blind > blind
			})
			sees(how, round)
		}
	}
	log, err := os.ReadFile(srv.LogPath())
	must(t, err)
	if n := strings.Count(string(log), "crashed by signal: 11"); n != crashes["segfault"] {
		t.Errorf("%d of %d processes died of a fault in their memory", n, crashes["segfault"])
	}
	t.Logf("crashes: %v, which lasted %v", crashes, lasted)
	testredis.Eventually(t, soon, func() bool { return w.s.State().Up }, "the target is not up")
	sweep(t, w.s)
	w.audit()
	testredis.Eventually(t, soon, func() bool { return goroutinesOf(t) < before+60 }, "goroutines are left behind")
}

// goroutinesOf is how many goroutines bear the name of the test.
func goroutinesOf(t *testing.T) (n int) {
	t.Helper()
	var profile strings.Builder
	must(t, pprof.Lookup("goroutine").WriteTo(&profile, 1))
	alike := 0
	for line := range strings.Lines(profile.String()) {
		if strings.HasPrefix(line, "# labels:") && strings.Contains(line, strconv.Quote(t.Name())) {
			n += alike
		}
		_, _ = fmt.Sscanf(line, "%d @", &alike)
	}
	return n
}

// crashSettings let a server crash quickly: a search of its memory for faults would
// take the most of it. Before 6.2 there is none of these.
func crashSettings(t testing.TB) []testredis.Option {
	t.Helper()
	if !testredis.Version(t).AtLeast(6, 2) {
		return nil
	}
	return []testredis.Option{testredis.WithConfig("crash-memcheck-enabled no")}
}

// infoLine is the rest of the line of an INFO that begins with name; "" for none.
func infoLine(info, name string) string {
	for line := range strings.Lines(info) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// Fifty thousand writes a second on a hundred locks, by the server's own count and clock:
// many changes become one look, nothing waits without bound, and in the end all is known
// as it is.
// fault: 57
func TestHotChurn(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	w := tracked(t, fast(srv.URL()))
	const locks, writers, rate, span = 100, 4, 50_000, 2500 * time.Millisecond
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	for g := range writers {
		wg.Go(func() { hammer(ctx, t, srv.Addr(), g, locks, rate*6/5/writers) })
	}
	most := 0
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for ctx.Err() == nil {
			most = max(most, w.s.WatchState().Waiting)
			pause(ctx, 10*time.Millisecond)
		}
	}()
	// A span in which the machine gave the server too little does not count; the writers
	// make up for what was due in it, so the next one has more.
	made, best, reached := 0.0, 0.0, false
	writes, at := writesOf(t, c)
	reads := w.s.WatchState().Reads
	for tries := 0; tries < 12 && !reached; tries++ {
		from, since, before := writes, at, reads
		pause(ctx, span)
		writes, at = writesOf(t, c)
		reads = w.s.WatchState().Reads
		made = float64(writes-from) / at.Sub(since).Seconds()
		reached, best = made >= rate, max(best, made)
		t.Logf("%.0f writes a second for %s; %d keys were read", made, at.Sub(since), reads-before)
		if (reads-before)*2 > writes-from {
			t.Errorf("%d reads of %d writes", reads-before, writes-from)
		}
	}
	stop()
	wg.Wait()
	<-watched
	// A machine that is busy with other tests makes fewer; what follows has to hold all the same.
	if best < rate/4 {
		t.Errorf("%.0f writes a second at best: not what is to be tested", best)
	}
	testredis.Eventually(t, soon, func() bool { return agrees(t, w, c) }, "the table is not what the server has")
	s := w.s.WatchState()
	t.Logf("%d keys pushed, %d read, at most %d wait", s.Events, s.Reads, most)
	if most > locks || s.Blind != 0 || !whole(s) {
		t.Errorf("%d keys waited; %+v", most, s)
	}
	w.audit()
}

// writesOf returns how many SET and DEL the server has run, and its time.
func writesOf(t *testing.T, c *redis.Client) (int64, time.Time) {
	t.Helper()
	var stats *redis.StringCmd
	var now *redis.TimeCmd
	_, err := c.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
		stats, now = p.Info(t.Context(), "commandstats"), p.Time(t.Context())
		return nil
	})
	must(t, err)
	var sum int64
	for _, command := range []string{"set", "del"} {
		if _, rest, ok := strings.Cut(stats.Val(), "cmdstat_"+command+":calls="); ok {
			var n int64
			_, _ = fmt.Sscanf(rest, "%d", &n)
			sum += n
		}
	}
	return sum, now.Val()
}

// hammer writes each of so many locks in turn, rate times a second in all, until ctx
// ends: four times a token with a TTL, once DEL. What is late is made up for. The requests
// are made beforehand, each the same as long as it is sent, since a client that makes them
// one by one does not come to such a rate under the race detector.
func hammer(ctx context.Context, t *testing.T, addr string, writer, locks, rate int) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	const fairMutex = 5
	var requests [fairMutex][]byte
	answers := [fairMutex]int{}
	for turn := range fairMutex {
		for i := range locks {
			key := fmt.Sprint("lock:hot:", i)
			if (turn+i)%fairMutex == 0 {
				requests[turn] = fmt.Appendf(requests[turn], "*2\r\n$3\r\nDEL\r\n$%d\r\n%s\r\n", len(key), key)
				answers[turn] += len(":0\r\n")
				continue
			}
			token := fmt.Sprintf("%d-%d-%d", writer, turn, i)
			requests[turn] = fmt.Appendf(requests[turn], "*5\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n$2\r\nPX\r\n$5\r\n60000\r\n",
				len(key), key, len(token), token)
			answers[turn] += len("+OK\r\n")
		}
	}
	answer := make([]byte, locks*len("+OK\r\n"))
	began := time.Now()
	for n := 0; ctx.Err() == nil; n++ {
		due := time.Duration(n*locks) * time.Second / time.Duration(rate)
		pause(ctx, due-time.Since(began))
		turn := n % fairMutex
		if _, err := conn.Write(requests[turn]); err != nil {
			t.Error(err)
			return
		}
		if _, err := io.ReadFull(conn, answer[:answers[turn]]); err != nil || bytes.IndexByte(answer[:answers[turn]], '-') >= 0 {
			t.Errorf("%v, answers %q", err, answer)
			return
		}
	}
}

// A million keys and a hundred thousand locks in a sweep: all of them, in bounded
// time and memory. Under the race detector a tenth of it.
// fault: 56
func TestAMillionKeys(t *testing.T) {
	keys, locks, most := 1_000_000, 100_000, 20*time.Second
	if raced {
		keys, locks, most = keys/10, locks/10, 60*time.Second
	}
	srv := testredis.Start(t)
	c := srv.Client(t)
	ctx := t.Context()
	must(t, c.Do(ctx, "debug", "populate", keys-locks, "user:data").Err())
	for from := 0; from < locks; from += 5000 {
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := from; i < from+5000; i++ {
				p.Set(ctx, fmt.Sprintf("lock:order:%d", i), fmt.Sprintf("%032x", i), time.Hour)
			}
			return nil
		})
		must(t, err)
	}
	r := fast(srv.URL())
	r.classes = []class.Class{{Name: "orders", Match: []string{"lock:order:*"}}}
	s := r.build(t)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	got := sweep(t, s)
	took := time.Since(began)
	if got.Keys() != int64(keys) || len(got.Locks) != locks || s.Table().Len() != locks {
		t.Errorf("%d keys, %d locks, %d in the table", got.Keys(), len(got.Locks), s.Table().Len())
	}
	if got = sweep(t, s); len(got.Endings) != 0 || len(got.Locks) != locks {
		t.Errorf("the second sweep: %d endings, %d locks", len(got.Endings), len(got.Locks))
	}
	got = locksteward.Sweep{}
	runtime.GC()
	runtime.ReadMemStats(&after)
	grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d keys with %d locks: %s, the table keeps %d bytes a lock", keys, locks, took.Round(time.Millisecond), grown/int64(locks))
	if took > most || grown > 1000*int64(locks) {
		t.Errorf("a sweep took %s, the table keeps %d bytes", took, grown)
	}
	runtime.KeepAlive(s)
	if !strings.HasPrefix(s.Table().Locks()[0].Key, "lock:order:") {
		t.Error("odd table")
	}
}
