package rules

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// TestLifeOfFindings drives an engine through arbitrary sweeps and direct reads
// and checks what people rely on: nothing resolves without evidence, each reported
// finding is reported its end exactly once, and the table is what the transitions
// say.
func TestLifeOfFindings(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		e := newEngine(t, nil, nil)
		firing := map[string]locksteward.Finding{} // as reported, by fingerprint
		now, seq := t0, uint64(0)
		for range rapid.IntRange(1, 12).Draw(rt, "evaluations") {
			now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(rt, "seconds")) * time.Second)
			s := drawSweep(rt, now)
			direct := rapid.Bool().Draw(rt, "direct")
			var reported []locksteward.Transition
			if direct {
				reported = evaluateLocks(e, s.Target, s.At, s.Locks, s.Endings)
			} else {
				reported = e.Evaluate(s)
			}
			for _, tr := range reported {
				if tr.Seq != seq+1 {
					rt.Fatalf("seq %d after %d", tr.Seq, seq)
				}
				seq = tr.Seq
				f := tr.Finding
				id := f.Fingerprint()
				before, known := firing[id]
				switch f.Status {
				case locksteward.StatusFiring:
					if known && before.Severity == f.Severity {
						rt.Fatalf("reported twice: %+v", f)
					}
					if known && Notifies(before) && !Notifies(f) {
						rt.Fatalf("fell silent without an end: %+v", f)
					}
					firing[id] = f
				case locksteward.StatusResolved:
					if !known {
						rt.Fatalf("an end without a beginning: %+v", f)
					}
					if before.Severity != f.Severity {
						rt.Fatalf("ended as %s, reported as %s", f.Severity, before.Severity)
					}
					if !evidence(s, f, direct) {
						rt.Fatalf("resolved without evidence: %+v\nby %+v", f, s)
					}
					delete(firing, id)
				default:
					rt.Fatalf("reported a %s finding", f.Status)
				}
			}
			var tabled []string
			for _, f := range e.Findings() {
				if f.Status == locksteward.StatusFiring {
					tabled = append(tabled, f.Fingerprint())
				}
			}
			marked := map[string]map[LockKey]Mark{}
			for _, f := range e.Findings() {
				k := LockKey{DB: f.DB, Key: f.Key}
				if f.Key == "" {
					continue
				}
				if marked[f.Target] == nil {
					marked[f.Target] = map[LockKey]Mark{}
				}
				m := marked[f.Target][k]
				if m.Rules = append(m.Rules, f.Rule); m.Status != locksteward.StatusFiring {
					m.Status = f.Status
				}
				slices.Sort(m.Rules)
				m.Rules = slices.Compact(m.Rules)
				marked[f.Target][k] = m
			}
			for _, target := range []string{"t0", "t1"} {
				if got := len(e.marks.of[target]); got != len(marked[target]) {
					rt.Fatalf("%d locks of %s have marks, the findings say %d", got, target, len(marked[target]))
				}
				for k, m := range marked[target] {
					if one := e.MarkOf(target, k.DB, k.Key); !reflect.DeepEqual(one, m) {
						rt.Fatalf("mark of %q is %v, want %v", k.Key, one, m)
					}
				}
			}
			slices.Sort(tabled)
			if want := slices.Sorted(maps.Keys(firing)); !slices.Equal(tabled, want) {
				rt.Fatalf("table %v, reported %v", tabled, want)
			}
		}
		for _, target := range []string{"t0", "t1"} {
			e.Evaluate(locksteward.Sweep{Target: target, At: now, Masters: []locksteward.MasterPass{{Complete: true}}})
		}
		if left := e.Findings(); len(left) != 0 {
			rt.Fatalf("left after empty complete sweeps: %+v", left)
		}
	})
}

// evidence says whether s allows f to resolve: its key was seen or has ended, or
// everything was seen, or its loss or class was judged anew.
func evidence(s locksteward.Sweep, f locksteward.Finding, direct bool) bool {
	if f.Target != s.Target {
		return false
	}
	if !direct && s.Complete() {
		return true
	}
	if f.Key == "" {
		return false
	}
	if f.Rule == "hold/lost" { // reported again with another severity
		return !direct && slices.ContainsFunc(s.Losses, func(l locksteward.Loss) bool { return l.Key == f.Key && l.Claim.ID == f.Subject })
	}
	return slices.ContainsFunc(s.Locks, func(l locksteward.Lock) bool { return l.Key == f.Key }) ||
		slices.ContainsFunc(s.Endings, func(e locksteward.Ending) bool { return e.Lock.Key == f.Key })
}

func drawSweep(rt *rapid.T, now time.Time) locksteward.Sweep {
	s := locksteward.Sweep{Target: rapid.SampledFrom([]string{"t0", "t1"}).Draw(rt, "target"), At: now}
	for i := range rapid.IntRange(0, 2).Draw(rt, "masters") {
		s.Masters = append(s.Masters, locksteward.MasterPass{Node: fmt.Sprint(i), Complete: rapid.Bool().Draw(rt, "complete")})
	}
	for _, key := range []string{"a", "b"} {
		if rapid.Bool().Draw(rt, "seen") {
			s.Locks = append(s.Locks, drawLock(rt, key, now))
		}
		if rapid.IntRange(0, 3).Draw(rt, "ended") == 0 {
			s.Endings = append(s.Endings, locksteward.Ending{Lock: drawLock(rt, key, now), At: now})
		}
		if rapid.IntRange(0, 2).Draw(rt, "lost") == 0 {
			l := locksteward.Loss{Key: key, Class: "default", How: locksteward.EndedExpired, At: now, Deadline: t0}
			l.Claim.ID = rapid.SampledFrom([]string{"c1", "c2"}).Draw(rt, "claim")
			if rapid.Bool().Draw(rt, "instance") {
				l.Instance = &locksteward.Instance{Beat: t0.Add(time.Duration(rapid.IntRange(-5, 5).Draw(rt, "beat")) * time.Second)}
			}
			s.Losses = append(s.Losses, l)
		}
	}
	return s
}

func drawLock(rt *rapid.T, key string, now time.Time) locksteward.Lock {
	shape := rapid.SampledFrom([]func(*locksteward.Lock){noTTL, longTTL, shared, func(*locksteward.Lock) {}}).Draw(rt, "shape")
	return lockAt(key, now, shape, firstSeen(now.Add(-time.Duration(rapid.IntRange(0, 100).Draw(rt, "seen for"))*time.Second)))
}

// FuzzEvaluate feeds numbers that no server would give: nothing panics, the
// same input gives the same output, and a rule decides the same whether it is
// asked to explain or not.
func FuzzEvaluate(f *testing.F) {
	f.Add(int64(0), int64(-1), int64(-1), int64(0), int64(0), int64(0), 0, "redisson", "k")
	f.Add(int64(1)<<62, int64(1)<<62, int64(1)<<62, int64(-1)<<62, int64(1)<<62, int64(-1)<<63, 1<<31, "", "")
	f.Add(int64(1772366400), int64(30e9), int64(1772366430000), int64(10e9), int64(1772366000), int64(5e9), 7, "locksteward", "\xff\x00")
	f.Fuzz(func(t *testing.T, at, ttl, expireAt, every, seen, other int64, looks int, library, key string) {
		moment := func(n int64) time.Time { return time.Unix(n%(1<<40), 0) }
		l := locksteward.Lock{
			Observation: locksteward.Observation{
				Target: "redis", Key: key, Type: "string", At: moment(at),
				TTL: time.Duration(ttl), ExpireAt: expireAt, Idle: time.Duration(other),
				Kind: locksteward.KindLock, Class: library, Library: library, SharedToken: looks%2 == 0,
				Waiters: looks, Holder: locksteward.Holder{App: key, Instance: key},
			},
			History: locksteward.History{
				FirstSeen: moment(seen), LastSeen: moment(other), Looks: looks,
				Renewals: looks, LastRenewal: moment(seen), RenewEvery: time.Duration(every),
			},
		}
		claim := locksteward.Claim{
			ID: key, Acquired: moment(seen), Renewed: moment(other), Progress: moment(every), TTL: time.Duration(ttl),
			RenewEvery: time.Duration(every), Expect: time.Duration(other), MaxHold: time.Duration(ttl),
			Renewals: every, RenewFailures: other, Fence: ttl, Session: library, Holding: []string{key, library},
		}
		claimed := l
		claimed.Key, claimed.Claim, claimed.Instance = key+"2", &claim, &locksteward.Instance{Beat: moment(other)}
		if looks%3 == 0 {
			claimed.Instance = nil
		}
		s := locksteward.Sweep{
			Target: "redis", At: moment(at), Locks: []locksteward.Lock{l, claimed}, Masters: []locksteward.MasterPass{{Complete: true}},
			Endings: []locksteward.Ending{{Lock: claimed, At: moment(other)}},
			Losses: []locksteward.Loss{{
				Key: key, Class: library, How: locksteward.EndedHow(library), At: moment(at), Deadline: moment(seen),
				Claim: claim, Instance: claimed.Instance,
			}},
			Waiters: []locksteward.Waiter{
				{Target: "redis", Key: key, ID: library, Session: key, Since: moment(seen), Until: moment(other)},
				{Target: "redis", Key: claimed.Key, ID: key, Session: library, Since: moment(other)},
			},
			Instances: []locksteward.Instance{{
				ID: key, Started: moment(seen), Counts: map[string]locksteward.Counts{library: {Acquired: every, Failed: other, Contended: ttl}},
			}},
		}
		e, twin := newEngine(t, nil, nil), newEngine(t, nil, nil)
		for range 2 {
			got, again := e.Evaluate(s), twin.Evaluate(s)
			if !reflect.DeepEqual(got, again) {
				t.Fatalf("the same input gave %+v\nand %+v", got, again)
			}
		}
		for _, each := range s.Locks {
			loud := e.Explain(each)
			for _, r := range All() {
				if d := r.Doc(); d.Scope == ScopeLock {
					quiet := r.Evaluate(e.situated("redis", Input{Now: each.At, Class: e.policy.classOf(each.Class), Lock: &each}))
					i := slices.IndexFunc(loud, func(v Verdict) bool { return v.Rule == d.Name })
					if loud[i].Result != quiet.Result || loud[i].Reason == "" {
						t.Fatalf("%s: %+v when explaining, %s when not", d.Name, loud[i], quiet.Result)
					}
				}
			}
		}
		evaluateLocks(e, "redis", time.Time{}, s.Locks, nil)
	})
}

// TestRenewalNeverLateWhileOnTime simulates watchdogs that renew on time, and
// looks at every rhythm and at none: no way of looking may make a live holder
// late. The interval is learned as the scanner learns it, from the steps of the
// expiry.
func TestRenewalNeverLateWhileOnTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		every := time.Duration(rapid.IntRange(1000, 20000).Draw(rt, "renew every ms")) * time.Millisecond
		lease := every * time.Duration(rapid.SampledFrom([]int{3, 3, 2, 10}).Draw(rt, "intervals per lease"))
		library := "token"
		if lease == 3*every { // Redisson's rhythm
			library = rapid.SampledFrom([]string{"redisson", "token"}).Draw(rt, "library")
		}
		gap := rapid.IntRange(1, 40000).Draw(rt, "look at most every ms")
		l := lockAt("a", t0, func(l *locksteward.Lock) { l.Library = library; l.Identity = locksteward.IdentityLineage })
		l.History = locksteward.History{}
		known := false
		at := t0
		for range 60 {
			at = at.Add(time.Duration(rapid.IntRange(1, gap).Draw(rt, "gap")) * time.Millisecond)
			renewed := t0.Add(at.Sub(t0) / every * every)
			expire := renewed.Add(lease).UnixMilli()
			h := &l.History
			switch step := time.Duration(expire-l.ExpireAt) * time.Millisecond; {
			case h.Looks == 0:
				h.FirstSeen = at
			case step > 0:
				h.Renewals++
				h.LastRenewal = at
				switch {
				case h.RenewEvery == 0:
					h.RenewEvery = step
				case step < h.RenewEvery:
					h.RenewEvery = (h.RenewEvery + step) / 2
				default:
					h.RenewEvery += (step - h.RenewEvery) / 8
				}
			}
			h.Looks++
			h.LastSeen, l.At, l.ExpireAt = at, at, expire
			l.TTL = time.UnixMilli(expire).Sub(at)
			r := judgeRenewal(&l, formats.Facts(library), at)
			if r.late() {
				rt.Fatalf("late by %s at %s: renews every %s of %s: %+v", r.overdue, at.Sub(t0), every, lease, *h)
			}
			known = known || r.known
		}
		if !known {
			return
		}
		// It stops: by the end of the lease that is late, if the lease is long
		// enough for a lateness that shows.
		last := t0.Add(at.Sub(t0) / every * every)
		end := last.Add(lease - time.Millisecond)
		l.At, l.TTL = end, time.Millisecond
		if r := judgeRenewal(&l, formats.Facts(library), end); library == "redisson" && end.Sub(l.History.LastRenewal) > lease*9/10 && !r.late() {
			rt.Fatalf("not late %s before the end of a lease of %s: %+v", l.TTL, lease, l.History)
		}
	})
}
