package rules

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// TestCyclesAndNoOthers draws wait-for graphs over two targets, sessions with
// several waits among them, and reads each target twice: there is a finding if
// and only if there is a cycle, and every session of a finding is on one.
func TestCyclesAndNoOthers(t *testing.T) {
	t.Parallel()
	both := 0
	rapid.Check(t, func(rt *rapid.T) {
		sessions := rapid.IntRange(1, 12).Draw(rt, "sessions")
		var edges [][2]int // who waits for whom
		e := newEngine(t, nil, nil)
		held := map[string][]locksteward.Lock{}
		waits := map[string][]locksteward.Waiter{}
		for i := range rapid.IntRange(0, 16).Draw(rt, "locks") {
			target := rapid.SampledFrom([]string{"t0", "t1"}).Draw(rt, "target")
			key, holder := fmt.Sprintf("k%d", i), rapid.IntRange(0, sessions-1).Draw(rt, "holder")
			waiting := rapid.SliceOfNDistinct(rapid.IntRange(0, sessions-1), 0, 3, rapid.ID).Draw(rt, "waiting")
			l := ourLock(target, key, fmt.Sprintf("claim%d", i), fmt.Sprint("s", holder), t0)
			l.Waiters = len(waiting)
			held[target] = append(held[target], l)
			for j, s := range waiting {
				edges = append(edges, [2]int{s, holder})
				waits[target] = append(waits[target], waiterOf(target, key, fmt.Sprintf("w%d-%d", i, j), fmt.Sprint("s", s), t0))
			}
		}
		on := onCycles(sessions, edges)
		for round := range 4 {
			for n, target := range []string{"t0", "t1"} {
				at := after(time.Duration(2*round+n) * time.Second)
				s := sweepAt(at, held[target]...)
				s.Target, s.Waiters = target, waits[target]
				e.Evaluate(s)
			}
		}
		var firing []*cycle
		for _, f := range e.Findings() {
			if f.Rule != WaitCycle {
				continue
			}
			if f.Status != locksteward.StatusFiring {
				rt.Fatalf("still %s after four reads: %+v", f.Status, f)
			}
			firing = append(firing, e.waits.cycles[f.Subject])
		}
		if any := slices.Contains(on, true); any != (len(firing) > 0) {
			rt.Fatalf("a cycle: %v, findings: %d, edges %v", any, len(firing), edges)
		} else if any {
			both |= 1
		} else {
			both |= 2
		}
		for _, c := range firing {
			for i, m := range c.members {
				var s int
				if _, err := fmt.Sscanf(m.wait.session(), "s%d", &s); err != nil || !on[s] {
					rt.Fatalf("session %q is on no cycle of %v", m.wait.session(), edges)
				}
				if next := c.members[(i+1)%len(c.members)]; m.wait.on.holder.session != next.wait.session() {
					rt.Fatalf("%+v is no round", c)
				}
			}
		}
	})
	if both != 3 {
		t.Errorf("graphs with and without cycles were wanted, got %b", both)
	}
}

// onCycles says of each node whether it can reach itself, the slow way.
func onCycles(n int, edges [][2]int) []bool {
	reach := make([][]bool, n)
	for i := range reach {
		reach[i] = make([]bool, n)
	}
	for _, e := range edges {
		reach[e[0]][e[1]] = true
	}
	for k := range n {
		for i := range n {
			for j := range n {
				reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
			}
		}
	}
	on := make([]bool, n)
	for i := range on {
		on[i] = reach[i][i]
	}
	return on
}

// TestNoDeadlockIsReportedThatNeverWas runs sessions that take, wait, give up and
// release, and reads two targets meanwhile, key by key, in sweeps that overlap
// and are often cut. What fires was a deadlock at one moment; when all stands
// still, what fires are the deadlocks.
func TestNoDeadlockIsReportedThatNeverWas(t *testing.T) {
	t.Parallel()
	deadlocks, reported := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt)
		e := newEngine(t, nil, nil)
		sweeps := []*worldSweep{{target: "t0"}, {target: "t1"}}
		evaluate := func(s *worldSweep) {
			for _, tr := range e.Evaluate(s.result) {
				f := tr.Finding
				if f.Rule != WaitCycle {
					continue
				}
				if f.Target != s.target {
					rt.Fatalf("judging %s changed a finding on %s", s.target, f.Target)
				}
				if f.Status == locksteward.StatusFiring {
					reported++
					var ids []string
					for _, m := range e.waits.cycles[f.Subject].members {
						ids = append(ids, m.claim+"<"+m.waiter)
					}
					slices.Sort(ids)
					if !w.was[strings.Join(ids, " ")] {
						rt.Fatalf("reported a deadlock that never was: %v\nthere were: %v", ids, w.was)
					}
				}
			}
		}
		for range rapid.IntRange(0, 120).Draw(rt, "steps") {
			w.now++
			switch what := rapid.IntRange(0, 9).Draw(rt, "what"); {
			case what < 5:
				w.act()
			default:
				s := sweeps[what%2]
				if s.step(w) {
					evaluate(s)
					s.began = false
				}
			}
		}
		// All stands still.
		for range 4 { // the first may have begun before
			for _, s := range sweeps {
				s.whole = true
				for w.now++; !s.step(w); w.now++ {
				}
				evaluate(s)
				s.began = false
			}
		}
		standing := w.cycles()
		deadlocks += len(standing)
		var firing []string
		for _, f := range e.Findings() {
			if f.Rule == WaitCycle && f.Status == locksteward.StatusFiring {
				firing = append(firing, f.Subject)
			}
		}
		if len(firing) != len(standing) {
			rt.Fatalf("%d firing, %d deadlocks: %v", len(firing), len(standing), standing)
		}
	})
	if deadlocks == 0 || reported == 0 {
		t.Errorf("%d deadlocks, reported %d: the test shows nothing", deadlocks, reported)
	}
}

// world is a server's truth: who has which lock and who waits.
type world struct {
	rt    *rapid.T
	now   int
	ids   int
	locks []*worldLock
	waits map[int]*worldWait // by session
	was   map[string]bool    // deadlocks that stood at one moment
}

type worldLock struct {
	target, key string
	claim       string // "" is free
	session     int
	acquired    int
	queue       []*worldWait
}

type worldWait struct {
	id      string
	session int
	lock    *worldLock
	since   int
}

func newWorld(rt *rapid.T) *world {
	w := &world{rt: rt, waits: map[int]*worldWait{}, was: map[string]bool{}}
	for i := range 5 {
		w.locks = append(w.locks, &worldLock{target: fmt.Sprint("t", i%2), key: fmt.Sprint("k", i)})
	}
	return w
}

// act lets one of five sessions do something.
func (w *world) act() {
	s := rapid.IntRange(0, 4).Draw(w.rt, "session")
	l := w.locks[rapid.IntRange(0, len(w.locks)-1).Draw(w.rt, "lock")]
	switch wait := w.waits[s]; {
	case wait != nil:
		if rapid.IntRange(0, 5).Draw(w.rt, "gives up") == 0 {
			wait.lock.queue = slices.DeleteFunc(wait.lock.queue, func(o *worldWait) bool { return o == wait })
			delete(w.waits, s)
		}
	case l.claim == "":
		w.ids++
		l.claim, l.session, l.acquired = fmt.Sprint("a", w.ids), s, w.now
	case l.session == s:
		l.claim = ""
		if len(l.queue) > 0 {
			next := l.queue[0]
			l.queue = l.queue[1:]
			delete(w.waits, next.session)
			l.claim, l.session, l.acquired = next.id, next.session, w.now
		}
	default:
		w.ids++
		wait := &worldWait{id: fmt.Sprint("a", w.ids), session: s, lock: l, since: w.now}
		l.queue = append(l.queue, wait)
		w.waits[s] = wait
	}
	for _, c := range w.cycles() {
		w.was[c] = true
	}
}

// cycles follows each session's wait until it comes back.
func (w *world) cycles() []string {
	found := map[string]bool{}
	for s := range 5 {
		var ids []string
		at := s
		for range 5 {
			wait := w.waits[at]
			if wait == nil || wait.lock.claim == "" {
				break
			}
			ids = append(ids, wait.lock.claim+"<"+wait.id)
			if at = wait.lock.session; at == s {
				slices.Sort(ids)
				found[strings.Join(ids, " ")] = true
				break
			}
		}
	}
	var out []string
	for c := range found {
		out = append(out, c)
	}
	return out
}

// worldSweep reads the locks of a target one by one, and who waits for each at
// another moment.
type worldSweep struct {
	target string
	began  bool
	whole  bool
	todo   []int // 2i is lock i, 2i+1 those who wait for it
	last   map[string]string
	result locksteward.Sweep
}

// step makes one read, and says that the sweep is done.
func (s *worldSweep) step(w *world) bool {
	if !s.began {
		s.began, s.todo = true, nil
		for i, l := range w.locks {
			if l.target == s.target {
				s.todo = append(s.todo, 2*i, 2*i+1)
			}
		}
		s.todo = rapid.Permutation(s.todo).Draw(w.rt, "order")
		s.result = locksteward.Sweep{Target: s.target, Started: w.at(), Masters: []locksteward.MasterPass{{Node: "n", Complete: true}}}
		if s.last == nil {
			s.last = map[string]string{}
		}
		if !s.whole && rapid.IntRange(0, 2).Draw(w.rt, "cut") == 0 {
			s.result.Masters[0].Complete = false
			s.todo = s.todo[:len(s.todo)/2]
		}
		return false
	}
	if len(s.todo) > 0 {
		s.read(w, w.locks[s.todo[0]/2], s.todo[0]%2 == 0)
		s.todo = s.todo[1:]
		return false
	}
	s.result.At = w.at()
	s.result.Duration = s.result.At.Sub(s.result.Started)
	for i := range s.result.Locks {
		l := &s.result.Locks[i]
		read := false
		for j := range s.result.Waiters {
			if s.result.Waiters[j].Key == l.Key {
				l.Waiters = max(0, l.Waiters) + 1
				read = true
			}
		}
		if !read && s.result.Complete() {
			l.Waiters = 0
		}
	}
	return true
}

func (w *world) at() time.Time { return t0.Add(time.Duration(w.now) * time.Second) }

func (s *worldSweep) read(w *world, l *worldLock, itself bool) {
	if !itself {
		for _, wait := range l.queue {
			s.result.Waiters = append(s.result.Waiters,
				waiterOf(l.target, l.key, wait.id, fmt.Sprint("s", wait.session), t0.Add(time.Duration(wait.since)*time.Second)))
		}
		return
	}
	if before := s.last[l.key]; before != "" && before != l.claim {
		s.result.Endings = append(s.result.Endings, locksteward.Ending{Lock: ourLock(l.target, l.key, before, "", t0), At: w.at()})
	}
	s.last[l.key] = l.claim
	if l.claim != "" {
		s.result.Locks = append(s.result.Locks,
			ourLock(l.target, l.key, l.claim, fmt.Sprint("s", l.session), t0.Add(time.Duration(l.acquired)*time.Second)))
	}
}

// ourLock is a lock of our own library; nobody knows who waits for it.
func ourLock(target, key, claim, session string, acquired time.Time) locksteward.Lock {
	return lockAt(key, acquired, func(l *locksteward.Lock) {
		l.Target, l.Library, l.TokenDigest = target, lossLibrary, "hmac-sha256:"+claim
		l.Claim = &locksteward.Claim{ID: claim, Session: session, Acquired: acquired, TTL: time.Minute}
		l.Holder = locksteward.Holder{App: "shop", Host: "web-1", PID: 7, Session: session}
	})
}

func waiterOf(target, key, id, session string, since time.Time) locksteward.Waiter {
	return locksteward.Waiter{
		Target: target, Key: key, Class: class.Default, ID: id, Session: session, Instance: "i-" + session,
		Since: since, Until: since.Add(time.Hour),
	}
}
