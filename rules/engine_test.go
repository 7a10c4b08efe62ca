package rules

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/catalogue"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/source/redis/formats"
)

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// after is a moment of the server's clock.
func after(d time.Duration) time.Time { return t0.Add(d) }

func newEngine(t testing.TB, cfg Config, classes []class.Class) *Engine {
	t.Helper()
	set, err := class.NewSet(classes)
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(cfg, set, formats.Facts)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	e.newEventID = func() string { n++; return fmt.Sprintf("event-%d", n) }
	return e
}

// evaluateLocks judges direct reads that tell nothing of waiters.
func evaluateLocks(e *Engine, target string, at time.Time, locks []locksteward.Lock, endings []locksteward.Ending) []locksteward.Transition {
	return e.EvaluateDirect(locksteward.Update{Target: target, At: at, Locks: locks, Endings: endings})
}

// lockAt is a healthy string lock looked at at.
func lockAt(key string, at time.Time, change ...func(*locksteward.Lock)) locksteward.Lock {
	l := locksteward.Lock{
		Observation: locksteward.Observation{
			Target: "redis", Key: key, Type: "string", At: at,
			TTL: time.Minute, ExpireAt: at.Add(time.Minute).UnixMilli(),
			Kind: locksteward.KindLock, Class: class.Default, Library: "token",
			Confidence: locksteward.ConfidenceHigh, Identity: locksteward.IdentityStrong,
			TokenDigest: "hmac-sha256:01", Count: 1, Waiters: -1, Idle: -1,
		},
		History: locksteward.History{FirstSeen: t0, LastSeen: at, Looks: 2},
	}
	for _, c := range change {
		c(&l)
	}
	return l
}

func noTTL(l *locksteward.Lock) {
	l.TTL, l.ExpireAt, l.Identity = locksteward.NoExpiry, locksteward.NoExpireAt, locksteward.IdentityNone
}

func longTTL(l *locksteward.Lock) {
	l.TTL, l.ExpireAt = 48*time.Hour, l.At.Add(48*time.Hour).UnixMilli()
}

func firstSeen(at time.Time) func(*locksteward.Lock) {
	return func(l *locksteward.Lock) { l.History.FirstSeen = at }
}

func ofClass(name string) func(*locksteward.Lock) {
	return func(l *locksteward.Lock) { l.Class, l.Configured = name, true }
}

func sweepAt(at time.Time, locks ...locksteward.Lock) locksteward.Sweep {
	return locksteward.Sweep{
		Target: "redis", At: at, Locks: locks,
		Masters: []locksteward.MasterPass{{Node: "n1", Complete: true}},
	}
}

func cut(s locksteward.Sweep) locksteward.Sweep {
	s.Masters = []locksteward.MasterPass{{Node: "n1", Complete: true}, {Node: "n2", Reason: "timeout"}}
	return s
}

// brief is a transition as one word each: rule, status, severity, key or class.
func brief(ts []locksteward.Transition) []string {
	var out []string
	for _, t := range ts {
		f := t.Finding
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s", f.Rule, f.Status, f.Severity, f.Key+f.Subject, map[bool]string{true: f.Class}[f.Key == ""])))
	}
	return out
}

func wantBrief(t *testing.T, got []locksteward.Transition, want ...string) {
	t.Helper()
	if !slices.Equal(brief(got), want) {
		t.Fatalf("transitions:\n got %q\nwant %q", brief(got), want)
	}
}

func wantFindings(t *testing.T, e *Engine, want ...string) {
	t.Helper()
	var ts []locksteward.Transition
	for _, f := range e.Findings() {
		ts = append(ts, locksteward.Transition{Finding: f})
	}
	if !slices.Equal(brief(ts), want) {
		t.Fatalf("findings:\n got %q\nwant %q", brief(ts), want)
	}
}

func TestLockWithoutTTLIsReadAgainBeforeItFires(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	wantBrief(t, e.Evaluate(sweepAt(t0, lockAt("a", t0, noTTL))))
	wantFindings(t, e, "ttl/none pending critical a")

	early := after(RecheckAfter - time.Millisecond)
	wantBrief(t, evaluateLocks(e, "redis", early, []locksteward.Lock{lockAt("a", early, noTTL)}, nil))

	due := after(RecheckAfter)
	got := evaluateLocks(e, "redis", due, []locksteward.Lock{lockAt("a", due, noTTL)}, nil)
	wantBrief(t, got, "ttl/none firing critical a")
	f := got[0].Finding
	if !f.Since.Equal(t0) || !f.FiredAt.Equal(due) || f.Risk != locksteward.RiskDeadlock || f.Library != "token" || f.Class != class.Default {
		t.Errorf("finding %+v", f)
	}
	if !strings.Contains(catalogue.Text("en", f.Cause), "SETNX and EXPIRE") || !strings.Contains(catalogue.Text("en", f.Remedy), "SET key token NX PX ms") {
		t.Errorf("cause %q, remedy %q", catalogue.Text("en", f.Cause), catalogue.Text("en", f.Remedy))
	}
	wantBrief(t, e.Evaluate(sweepAt(after(time.Minute), lockAt("a", after(time.Minute), noTTL))))
}

func TestExpireThatArrivesInTimeIsNoFinding(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	e.Evaluate(sweepAt(t0, lockAt("a", t0, noTTL)))
	due := after(RecheckAfter)
	wantBrief(t, evaluateLocks(e, "redis", due, []locksteward.Lock{lockAt("a", due)}, nil))
	wantFindings(t, e)
}

// TestLockThatLostItsTTL is reported sooner than one that may just be taken: unless its value
// is a constant, or was not read, or the configuration has a wait of its own.
func TestLockThatLostItsTTL(t *testing.T) {
	t.Parallel()
	had := func(l *locksteward.Lock) { l.History.HadTTL = true }
	for name, c := range map[string]struct {
		config Config
		change []func(*locksteward.Lock)
		after  time.Duration
	}{
		"a token that tells":    {nil, []func(*locksteward.Lock){noTTL, had}, lostAfter},
		"never seen with a TTL": {nil, []func(*locksteward.Lock){noTTL}, RecheckAfter},
		"a constant token":      {nil, []func(*locksteward.Lock){noTTL, had, func(l *locksteward.Lock) { l.SharedToken = true }}, RecheckAfter},
		"a value too large":     {nil, []func(*locksteward.Lock){noTTL, had, func(l *locksteward.Lock) { l.TokenDigest = "" }}, RecheckAfter},
		"a wait of one's own":   {Config{{Rule: "ttl/none", For: new(10 * time.Second)}}, []func(*locksteward.Lock){noTTL, had}, 10 * time.Second},
		"which is the default":  {Config{{Rule: "ttl/none", For: new(RecheckAfter)}}, []func(*locksteward.Lock){noTTL, had}, RecheckAfter},
		"a severity alone":      {Config{{Rule: "ttl/none", Severity: "critical"}}, []func(*locksteward.Lock){noTTL, had}, lostAfter},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEngine(t, c.config, nil)
			look := func(at time.Time) []locksteward.Transition {
				return evaluateLocks(e, "redis", at, []locksteward.Lock{lockAt("a", at, c.change...)}, nil)
			}
			wantBrief(t, look(t0))
			if got := e.NextLook(new(lockAt("a", t0, c.change...))).Sub(t0); got != c.after {
				t.Errorf("the next look is after %s, want %s", got, c.after)
			}
			wantBrief(t, look(after(c.after-time.Millisecond)))
			wantBrief(t, look(after(c.after)), "ttl/none firing critical a")
		})
	}
	// It has one again before the second look: nobody hears of it, and the wait begins anew.
	e := newEngine(t, nil, nil)
	for i, change := range []func(*locksteward.Lock){noTTL, func(*locksteward.Lock) {}, noTTL} {
		at := after(time.Duration(i) * (lostAfter - time.Millisecond))
		wantBrief(t, evaluateLocks(e, "redis", at, []locksteward.Lock{lockAt("a", at, had, change)}, nil))
	}
	wantFindings(t, e, "ttl/none pending critical a")
}

func TestAnotherHoldWaitsAnew(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	e.Evaluate(sweepAt(t0, lockAt("a", t0, noTTL)))
	// The scanner says that this hold was first seen after the finding began.
	second := after(30 * time.Second)
	wantBrief(t, e.Evaluate(sweepAt(second, lockAt("a", second, noTTL, firstSeen(second)))))
	wantFindings(t, e, "ttl/none pending critical a")
	third := after(60 * time.Second)
	wantBrief(t, e.Evaluate(sweepAt(third, lockAt("a", third, noTTL, firstSeen(second)))), "ttl/none firing critical a")
}

func TestServerClockThatGoesBackWaitsAnew(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	e.Evaluate(sweepAt(t0, lockAt("a", t0, noTTL)))
	back := after(-time.Hour)
	wantBrief(t, e.Evaluate(sweepAt(back, lockAt("a", back, noTTL))))
	due := back.Add(RecheckAfter)
	wantBrief(t, e.Evaluate(sweepAt(due, lockAt("a", due, noTTL))), "ttl/none firing critical a")
}

func TestResolveNeedsEvidence(t *testing.T) {
	t.Parallel()
	at := after(time.Minute)
	ending := func(when time.Time) []locksteward.Ending {
		return []locksteward.Ending{{Lock: lockAt("a", t0, longTTL), How: locksteward.EndedReleased, At: when}}
	}
	const resolvedA = "ttl/too-long resolved info a"
	for name, tc := range map[string]struct {
		sweep locksteward.Sweep
		want  []string
	}{
		"absent from a complete sweep":    {sweepAt(at), []string{resolvedA}},
		"absent from a cut sweep":         {cut(sweepAt(at)), nil},
		"target away":                     {locksteward.Sweep{Target: "redis"}, nil},
		"another target's complete sweep": {locksteward.Sweep{Target: "other", At: at, Masters: sweepAt(at).Masters}, nil},
		"ended, in a cut sweep":           {func() locksteward.Sweep { s := cut(sweepAt(at)); s.Endings = ending(at); return s }(), []string{resolvedA}},
		"healthy, in a cut sweep":         {cut(sweepAt(at, lockAt("a", at))), []string{resolvedA}},
		"only a candidate now":            {cut(sweepAt(at, lockAt("a", at, longTTL, func(l *locksteward.Lock) { l.Kind = locksteward.KindCandidate }))), []string{resolvedA}},
		"still so":                        {sweepAt(at, lockAt("a", at, longTTL)), nil},
		"seen first, then gone in the one sweep": {func() locksteward.Sweep {
			s := sweepAt(at, lockAt("a", after(30*time.Second), longTTL))
			s.Endings = ending(at)
			return s
		}(), []string{resolvedA}},
		"replaced by another that is so too": {
			func() locksteward.Sweep {
				s := sweepAt(at, lockAt("a", at, longTTL, firstSeen(at)))
				s.Endings = ending(after(time.Second))
				return s
			}(),
			[]string{resolvedA, "ttl/too-long firing info a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEngine(t, nil, nil)
			wantBrief(t, e.Evaluate(sweepAt(t0, lockAt("a", t0, longTTL))), "ttl/too-long firing info a")
			got := e.Evaluate(tc.sweep)
			wantBrief(t, got, tc.want...)
			for _, tr := range got {
				if tr.Finding.Status == locksteward.StatusResolved && (tr.Finding.ResolvedAt.IsZero() || !tr.Finding.Since.Equal(t0)) {
					t.Errorf("resolved %+v", tr.Finding)
				}
			}
		})
	}
}

func lossAt(at time.Time, beat *time.Time) locksteward.Sweep {
	s := sweepAt(at)
	l := locksteward.Loss{
		Target: "redis", Key: "a", Class: class.Default, How: locksteward.EndedExpired, At: at, Deadline: t0,
		Claim: locksteward.Claim{ID: "#c1", RenewEvery: 10 * time.Second},
	}
	if beat != nil {
		l.Instance = &locksteward.Instance{ID: "i1", Beat: *beat}
	}
	s.Losses = []locksteward.Loss{l}
	return s
}

func TestLossIsRaisedWhenTheHolderBeatsOn(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	first := e.Evaluate(lossAt(after(time.Second), new(after(-2*time.Second))))
	wantBrief(t, first, "hold/lost firing info a#c1")
	raised := e.Evaluate(lossAt(after(31*time.Second), new(after(28*time.Second))))
	wantBrief(t, raised, "hold/lost firing critical a#c1")
	if raised[0].EventID == first[0].EventID || raised[0].Seq <= first[0].Seq {
		t.Errorf("raised as event %s, %d after %s, %d", raised[0].EventID, raised[0].Seq, first[0].EventID, first[0].Seq)
	}
	if raised[0].Finding.Fingerprint() != first[0].Finding.Fingerprint() || !raised[0].Finding.FiredAt.Equal(first[0].Finding.FiredAt) {
		t.Error("a change of severity made another finding")
	}
	wantBrief(t, e.Evaluate(lossAt(after(61*time.Second), new(after(58*time.Second)))))
	// Anyone who was paged must be notified the end, and would not hear of an info.
	gone := e.Evaluate(lossAt(after(91*time.Second), nil))
	wantBrief(t, gone, "hold/lost resolved critical a#c1", "hold/lost firing info a#c1")
	if f := e.FindingsFor("redis", 0, "a"); len(f) != 1 || f[0].Subject != "#c1" {
		t.Errorf("findings for the key: %+v", f)
	}
	wantBrief(t, e.Evaluate(cut(sweepAt(after(121*time.Second)))))
	// A look at the key's next hold says nothing of the loss.
	wantBrief(t, evaluateLocks(e, "redis", after(122*time.Second), []locksteward.Lock{lockAt("a", after(122*time.Second))}, nil))
	wantBrief(t, e.Evaluate(sweepAt(after(151*time.Second))), "hold/lost resolved info a#c1")
}

// TestDeletedStaysDeleted: once the deadline has passed, the metadata of a lock
// that was deleted before it looks like that of one that expired.
func TestDeletedStaysDeleted(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	report := func(at time.Time, how locksteward.EndedHow, beat time.Time) locksteward.Sweep {
		s := lossAt(at, &beat)
		s.Losses[0].How, s.Losses[0].Deadline = how, after(20*time.Second)
		return s
	}
	got := e.Evaluate(report(t0, locksteward.EndedDeleted, after(-2*time.Second)))
	wantBrief(t, got, "hold/lost firing critical a#c1")
	// No heartbeat since the deadline yet: the process was killed, or beats soon.
	wantBrief(t, e.Evaluate(report(after(21*time.Second), locksteward.EndedExpired, after(18*time.Second))))
	wantBrief(t, e.Evaluate(report(after(51*time.Second), locksteward.EndedExpired, after(48*time.Second))))
	if f := e.Findings(); catalogue.Text("en", f[0].Summary) != catalogue.Text("en", got[0].Finding.Summary) {
		t.Errorf("now %q, first %q", catalogue.Text("en", f[0].Summary), catalogue.Text("en", got[0].Finding.Summary))
	}
}

// TestDeletedStaysDeletedOverARestart: the first report of a loss is in its
// finding.
func TestDeletedStaysDeletedOverARestart(t *testing.T) {
	t.Parallel()
	flushed := locksteward.ServerEvent{Kind: locksteward.ServerFlushed, Node: "n1", After: after(-time.Second), At: after(time.Second)}
	for name, events := range map[string][]locksteward.ServerEvent{"by somebody": nil, "by a flush": {flushed}} {
		before := newEngine(t, nil, nil)
		s := lossAt(t0, new(after(-2*time.Second)))
		s.Losses[0].How, s.Losses[0].Deadline, s.Losses[0].Node, s.Events = locksteward.EndedDeleted, after(20*time.Second), "n1", events
		before.Evaluate(s)
		reported := before.Findings()[0]

		s = lossAt(after(21*time.Second), new(after(18*time.Second)))
		s.Losses[0].How, s.Losses[0].Deadline, s.Losses[0].Node, s.Events = locksteward.EndedExpired, after(20*time.Second), "n1", events
		e := newEngine(t, nil, nil)
		e.Restore([]locksteward.Finding{reported})
		wantBrief(t, e.Evaluate(s))
		f := e.Findings()[0]
		if catalogue.Text("en", f.Summary) != catalogue.Text("en", reported.Summary) || f.Severity != reported.Severity {
			t.Errorf("%s: now %s %q, before the restart %s %q", name, f.Severity, catalogue.Text("en", f.Summary), reported.Severity, catalogue.Text("en", reported.Summary))
		}
		wantInChinese(t, name, f)

		// Another version may have worded it differently: then it begins anew.
		reported.Evidence = []locksteward.Message{locksteward.Literal("it is gone")}
		e = newEngine(t, nil, nil)
		e.Restore([]locksteward.Finding{reported})
		wantBrief(t, e.Evaluate(s), "hold/lost resolved critical a#c1", "hold/lost firing info a#c1")
	}
}

func TestALaterReportMayKnowMore(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	s := lossAt(after(time.Second), new(t0))
	wantBrief(t, e.Evaluate(s), "hold/lost firing info a#c1")
	s.Losses[0].How = locksteward.EndedDeleted
	wantBrief(t, e.Evaluate(s), "hold/lost firing critical a#c1")
}

func TestEachLostHoldIsAFinding(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	s := lossAt(after(time.Second), nil)
	other := s.Losses[0]
	other.Claim.ID = "#c0"
	s.Losses = append(s.Losses, other, other)
	wantBrief(t, e.Evaluate(s), "hold/lost firing info a#c0", "hold/lost firing info a#c1")
}

func shared(l *locksteward.Lock) { l.SharedToken, l.TokenKind = true, "a one-digit number" }

func TestClassIsJudgedOnCompleteSweepsOnly(t *testing.T) {
	t.Parallel()
	classes := []class.Class{{Name: "jobs", Match: []string{"jobs:*"}}}
	e := newEngine(t, nil, classes)
	both := []locksteward.Lock{lockAt("jobs:1", t0, shared, ofClass("jobs")), lockAt("lock:2", t0, shared), lockAt("lock:3", t0)}
	wantBrief(t, e.Evaluate(cut(sweepAt(t0, both...))))
	wantBrief(t, e.Evaluate(sweepAt(t0, both...)),
		"holder/shared-token firing info  default", "holder/shared-token firing info  jobs")
	wantBrief(t, e.Evaluate(cut(sweepAt(after(time.Minute), lockAt("jobs:1", after(time.Minute), ofClass("jobs"))))))
	wantBrief(t, evaluateLocks(e, "redis", t0, []locksteward.Lock{lockAt("jobs:1", t0, ofClass("jobs"))}, nil))
	wantBrief(t, e.Evaluate(sweepAt(after(time.Minute), lockAt("lock:2", after(time.Minute), shared))),
		"holder/shared-token resolved info  jobs")
	wantFindings(t, e, "holder/shared-token firing info  default")
}

func TestCandidatesAreNeverJudged(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	candidate := func(l *locksteward.Lock) { l.Kind = locksteward.KindCandidate }
	for _, at := range []time.Time{t0, after(time.Minute)} {
		wantBrief(t, e.Evaluate(sweepAt(at, lockAt("a", at, noTTL, shared, candidate))))
	}
	wantFindings(t, e)
}

func TestOverrides(t *testing.T) {
	t.Parallel()
	classes := []class.Class{
		{Name: "orders", Match: []string{"orders:*"}, Team: "checkout", RunbookURL: "https://wiki/locks"},
		{Name: "leaders", Match: []string{"leaders:*"}, TTL: class.TTLAllowedNone},
	}
	cfg := Config{
		{Rule: "ttl/none", Classes: []string{"orders"}, Severity: "warning", For: new(time.Duration(0))},
		{Rule: "ttl/none", Off: true},
		{Rule: "hold/lost", Severity: "warning"},
	}
	e := newEngine(t, cfg, classes)
	got := e.Evaluate(sweepAt(t0, lockAt("leaders:1", t0, noTTL, ofClass("leaders")), lockAt("orders:1", t0, noTTL, ofClass("orders")), lockAt("x", t0, noTTL)))
	wantBrief(t, got, "ttl/none firing warning orders:1")
	if f := got[0].Finding; f.Team != "checkout" || f.RunbookURL != "https://wiki/locks" || f.Class != "orders" {
		t.Errorf("finding %+v", f)
	}
	// An override moves the default, not the rule's own lesser verdict.
	wantBrief(t, e.Evaluate(lossAt(after(time.Second), nil)), "hold/lost firing info a#c1", "ttl/none resolved warning orders:1")
	wantBrief(t, e.Evaluate(lossAt(after(9*time.Second), new(after(8*time.Second)))), "hold/lost firing warning a#c1")
}

func TestReloadAppliesAtTheNextEvaluation(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	e.Evaluate(sweepAt(t0, lockAt("a", t0, longTTL)))
	if err := e.Reload(Config{{Rule: "nope"}}, nil); err == nil {
		t.Fatal("a bad configuration was accepted")
	}
	if err := e.Reload(Config{{Rule: "ttl/too-long", Severity: "warning"}}, nil); err != nil {
		t.Fatal(err)
	}
	wantFindings(t, e, "ttl/too-long firing info a")
	wantBrief(t, e.Evaluate(sweepAt(t0, lockAt("a", t0, longTTL))), "ttl/too-long firing warning a")
	if err := e.Reload(Config{{Rule: "ttl/too-long", Off: true}}, nil); err != nil {
		t.Fatal(err)
	}
	wantBrief(t, e.Evaluate(cut(sweepAt(t0, lockAt("a", t0, longTTL)))), "ttl/too-long resolved warning a")
}

func TestTransitionsAreOrderedAndNumbered(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	e.seq = 41
	got := e.Evaluate(sweepAt(t0, lockAt("c", t0, longTTL), lockAt("a", t0, longTTL), lockAt("b", t0, longTTL)))
	wantBrief(t, got, "ttl/too-long firing info a", "ttl/too-long firing info b", "ttl/too-long firing info c")
	for i, tr := range got {
		if tr.Seq != uint64(42+i) || tr.EventID != fmt.Sprintf("event-%d", i+1) || !tr.At.Equal(t0) {
			t.Errorf("transition %d: seq %d, event %s, at %s", i, tr.Seq, tr.EventID, tr.At)
		}
	}
	if e.seq != 44 {
		t.Errorf("seq %d", e.seq)
	}
}

func TestEventIDsAreUniqueByDefault(t *testing.T) {
	t.Parallel()
	e, err := New(nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := e.Evaluate(sweepAt(t0, lockAt("a", t0, longTTL), lockAt("b", t0, longTTL)))
	if len(got) != 2 || len(got[0].EventID) < 20 || got[0].EventID == got[1].EventID {
		t.Errorf("transitions %+v", got)
	}
}

func TestRestoreGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	before := newEngine(t, nil, nil)
	before.Evaluate(sweepAt(t0, lockAt("a", t0, longTTL), lockAt("b", t0, noTTL)))
	before.Evaluate(lossAt(t0, nil))
	before.Evaluate(func() locksteward.Sweep {
		s := lossAt(t0, nil)
		s.Locks = []locksteward.Lock{lockAt("a", t0, longTTL), lockAt("b", t0, noTTL), lockAt("c", t0, shared)}
		return s
	}())

	e := newEngine(t, nil, nil)
	e.seq = before.seq
	e.Restore(before.Findings())
	e.Restore([]locksteward.Finding{{Rule: "ttl/none", Key: "z", Status: locksteward.StatusResolved}})
	if !reflect.DeepEqual(e.Findings(), before.Findings()) {
		t.Fatalf("restored %+v\nfrom %+v", e.Findings(), before.Findings())
	}
	s := lossAt(after(time.Minute), nil)
	s.Locks = []locksteward.Lock{lockAt("a", s.At, longTTL), lockAt("b", s.At, noTTL), lockAt("c", s.At, shared)}
	got := e.Evaluate(s)
	wantBrief(t, got, "ttl/none firing critical b")
	if got[0].Seq != before.seq+1 {
		t.Errorf("seq %d after %d", got[0].Seq, before.seq)
	}
	wantBrief(t, e.Evaluate(sweepAt(after(2*time.Minute))),
		"holder/shared-token resolved info  default", "hold/lost resolved info a#c1", "ttl/too-long resolved info a", "ttl/none resolved critical b")
}

func TestRestoredFindingOfAnUnknownRuleResolves(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	fired := locksteward.Finding{Rule: "gone/rule", Severity: locksteward.SeverityWarning, Status: locksteward.StatusFiring, Target: "redis"}
	lock, loss, group := fired, fired, fired
	lock.Key, loss.Key, loss.Subject, group.Class = "a", "a", "c1", "default"
	e.Restore([]locksteward.Finding{lock, loss, group})
	wantBrief(t, e.Evaluate(cut(sweepAt(t0, lockAt("a", t0)))), "gone/rule resolved warning a")
	wantBrief(t, e.Evaluate(sweepAt(t0, lockAt("a", t0))), "gone/rule resolved warning  default", "gone/rule resolved warning ac1")
}

func TestRemoveTarget(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	e.Evaluate(sweepAt(t0, lockAt("a", t0, longTTL), lockAt("b", t0, noTTL)))
	other := sweepAt(t0, lockAt("a", t0, longTTL))
	other.Target = "other"
	e.Evaluate(other)
	wantBrief(t, e.RemoveTarget("redis", after(time.Second)), "ttl/too-long resolved info a")
	wantFindings(t, e, "ttl/too-long firing info a")
}

func TestFindingsAreSortedBySeverity(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	e.Evaluate(sweepAt(t0, lockAt("a", t0, longTTL), lockAt("b", t0, noTTL)))
	wantFindings(t, e, "ttl/none pending critical b", "ttl/too-long firing info a")
	if f := e.Findings(); !Notifies(f[0]) || Notifies(f[1]) {
		t.Error("critical notifies, info does not")
	}
}

func TestNewReportsAllProblems(t *testing.T) {
	t.Parallel()
	set, err := class.NewSet([]class.Class{{Name: "orders", Match: []string{"orders:*"}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = New(Config{{Rule: "nope"}, {Rule: "ttl/none", Classes: []string{"default", "order"}}}, set, nil)
	for _, want := range []string{
		`rules[0].rule: must be one of ` + strings.Join(Names(), ", ") + `, got "nope"`,
		`rules[1].classes[1]: must be one of default, orders, got "order"`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v\nwants %s", err, want)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	e, err := New(nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 50 {
				at := after(time.Duration(n) * time.Minute)
				s := sweepAt(at, lockAt("a", at, longTTL), lockAt("b", at, noTTL))
				s.Target = fmt.Sprintf("t%d", i%2)
				e.Evaluate(s)
				e.Findings()
				e.FindingsFor(s.Target, 0, "a")
				e.Explain(s.Locks[0])
				if err := e.Reload(nil, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	wantFindings(t, e, "ttl/none firing critical b", "ttl/none firing critical b", "ttl/too-long firing info a", "ttl/too-long firing info a")
}
