package alert

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/locksteward/locksteward"
)

// grouped is a sender whose one receiver is sent by a grouping.
func grouped(t *testing.T, g Grouping, m traits, hooks Hooks, out transport) *post {
	t.Helper()
	p := postOf(t, hooks, out)
	a := newWriter(Config{Grouping: g, FirstSweep: FirstSweepDigest}, Receiver{Name: "a"}.withDefaults(), m, p.hooks)
	p.apply(DefaultDrainTimeout, writers{[]writer{a}, FirstSweepDigest}, []*destination{newDestination(out, a)})
	return p
}

func machine() traits { return traits{cap: 100} }

func person() traits { return traits{cap: 2, people: true, rates: rates{perMinute: 20}} }

// received describes what arrived: "reason status: key state, …".
func (f *fake) received() []string {
	var out []string
	for _, a := range f.seen() {
		var keys []string
		for _, e := range a.p.Findings {
			keys = append(keys, e.Key.Key+" "+e.Status)
		}
		text := fmt.Sprintf("%s %s: %s", a.p.Reason, a.p.Status, strings.Join(keys, ", "))
		if a.p.Omitted > 0 {
			text += fmt.Sprintf(" +%d", a.p.Omitted)
		}
		out = append(out, text)
	}
	return out
}

func wantReported(t *testing.T, f *fake, want ...string) {
	t.Helper()
	if got := f.received(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("received\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What fires together comes together after the wait, what follows after the
// interval, and what still fires after the repeat.
func TestGroupWaitsAndRepeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		d := grouped(t, DefaultGrouping(), machine(), Hooks{}, f)
		stop := d.run()
		d.notify(fire("k", 1))
		time.Sleep(4 * time.Second)
		d.notify(fire("l", 2))
		synctest.Wait()
		wantReported(t, f)
		time.Sleep(2 * time.Second)
		wantReported(t, f, "news firing: k firing, l firing")
		d.notify(resolve("k", 3))
		time.Sleep(20 * time.Second)
		wantReported(t, f, "news firing: k firing, l firing")
		time.Sleep(20 * time.Second)
		wantReported(t, f, "news firing: k firing, l firing", "news resolved: k resolved")
		time.Sleep(5 * time.Hour)
		wantReported(t, f, "news firing: k firing, l firing", "news resolved: k resolved", "repeat firing: l firing")
		if g := f.seen()[2].p.Group; g.Firing != 1 || g.Labels["rule"] != "ttl/none" || g.Key != f.seen()[0].p.Group.Key {
			t.Errorf("group is %+v", g)
		}
		if p := f.seen()[2].p; p.Timestamp.Before(stamp(time.Now().Add(-2*time.Hour))) || len(p.Findings[0].CounterEvidence) != 0 {
			t.Errorf("a repeat of %s with %q", p.Timestamp, p.Findings[0].CounterEvidence)
		}
		if f.seen()[2].id == f.seen()[0].id {
			t.Error("a repeat has the id of the first message")
		}
		d.notify(resolve("l", 4))
		time.Sleep(time.Minute)
		stop()
		if got := f.received(); len(got) != 4 || got[3] != "news resolved: l resolved" {
			t.Errorf("received %q", got)
		}
		time.Sleep(24 * time.Hour)
	})
}

// A silence holds back what fires; what ends meanwhile was never reported, and what
// still fires at its end is sent then.
func TestSilenceHoldsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var silent atomic.Bool
		silent.Store(true)
		var c suppressions
		hooks := c.hooks()
		hooks.HeldBy = func(locksteward.Finding) string {
			if silent.Load() {
				return SuppressedSilence + ":s1"
			}
			return ""
		}
		f := &fake{}
		d := grouped(t, Grouping{By: []string{"target"}}, machine(), hooks, f)
		stop := d.run()
		d.notify(fire("k", 1), fire("l", 2))
		time.Sleep(time.Minute)
		d.notify(resolve("k", 3))
		time.Sleep(time.Minute)
		wantReported(t, f)
		silent.Store(false)
		d.box.wakeHeld()
		d.Wake()
		time.Sleep(time.Minute)
		wantReported(t, f, "news firing: l firing")
		// What people know to fire is ended for them whatever is silent.
		silent.Store(true)
		d.notify(resolve("l", 4))
		time.Sleep(time.Minute)
		stop()
		wantReported(t, f, "news firing: l firing", "news resolved: l resolved")
		if c.get("a silence") != 1 || c.get("a unknown") != 1 {
			t.Errorf("suppressed %v", c.n)
		}
	})
}

// What was held back until its end is not sent, though what held it back is over when
// both are looked at.
func TestHeldBackUntilItsEnd(t *testing.T) {
	t.Parallel()
	const why = SuppressedInhibit + ":target_down"
	for name, tc := range map[string]struct {
		waiting       []locksteward.PendingEvent
		sent, counted string
	}{
		"it ended":                  {[]locksteward.PendingEvent{waitsHeld("k", why), waitsEnd("k")}, "", "inhibit 1, unknown 1"},
		"it ended and fires again":  {[]locksteward.PendingEvent{waitsHeld("k", why), waitsEnd("k"), waitsFire("k")}, "k firing", "inhibit 1, unknown 1"},
		"it ended twice":            {[]locksteward.PendingEvent{waitsHeld("k", why), waitsEnd("k"), waitsHeld("k", why), waitsEnd("k")}, "", "inhibit 2, unknown 2"},
		"it fires still":            {[]locksteward.PendingEvent{waitsHeld("k", why)}, "k firing", ""},
		"another ended":             {[]locksteward.PendingEvent{waitsHeld("k", why), knows(waitsEnd("l"))}, "k firing, l resolved", ""},
		"nothing held it back":      {[]locksteward.PendingEvent{waitsFire("k"), waitsEnd("k")}, "k firing, k resolved", ""},
		"the receiver knew of it":   {[]locksteward.PendingEvent{knows(waitsHeld("k", why)), knows(waitsEnd("k"))}, "k resolved", "inhibit 1"},
		"it fires again and is not": {[]locksteward.PendingEvent{waitsEnd("k"), waitsHeld("k", why)}, "k firing", "unknown 1"},
	} {
		for i := range tc.waiting {
			tc.waiting[i].Seq = int64(i + 1)
		}
		p := decide(locksteward.DueGroup{Group: "g", Waiting: tc.waiting}, func(locksteward.Finding) string { return "" })
		var sent, counted []string
		for _, w := range p.notify {
			sent = append(sent, w.Finding.Key+" "+string(w.Finding.Status))
		}
		for _, reason := range SuppressedReasons() {
			if n := p.dropped[reason]; n > 0 {
				counted = append(counted, fmt.Sprintf("%s %d", reason, n))
			}
		}
		if got := strings.Join(sent, ", "); got != tc.sent {
			t.Errorf("%s: received %q, want %q", name, got, tc.sent)
		}
		if got := strings.Join(counted, ", "); got != tc.counted {
			t.Errorf("%s: counted %q, want %q", name, got, tc.counted)
		}
		if n := len(p.flushed.Notified) + len(p.flushed.Dropped) + len(p.flushed.Held); n != len(tc.waiting) {
			t.Errorf("%s: %d of %d are accounted for: %+v", name, n, len(tc.waiting), p.flushed)
		}
	}
}

func waitsFire(key string) locksteward.PendingEvent {
	return locksteward.PendingEvent{FindingEvent: locksteward.FindingEvent{Finding: fire(key, 1).Finding}}
}

func waitsEnd(key string) locksteward.PendingEvent {
	return locksteward.PendingEvent{FindingEvent: locksteward.FindingEvent{Finding: resolve(key, 1).Finding}}
}

func waitsHeld(key, why string) locksteward.PendingEvent {
	w := waitsFire(key)
	w.Held = why
	return w
}

func knows(w locksteward.PendingEvent) locksteward.PendingEvent {
	w.Known = true
	return w
}

// People get one message with the worst, and the number of the rest; machines get
// everything in parts.
// fault: 84
func TestStormIsCapped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var storm []locksteward.Transition
		for n := range uint64(250) {
			storm = append(storm, fire(fmt.Sprintf("k%03d", n), n+1))
		}
		storm[200].Finding.Severity = locksteward.SeverityCritical
		storm[199].Finding.Severity = locksteward.SeverityWarning
		for name, m := range map[string]traits{"person": person(), "machine": machine()} {
			f := &fake{}
			var c suppressions
			d := grouped(t, Grouping{By: []string{"class"}}, m, c.hooks(), f)
			stop := d.run()
			d.notify(storm...)
			time.Sleep(time.Minute)
			stop()
			seen := f.seen()
			if name == "person" {
				wantReported(t, f, "news firing: k000 firing, k001 firing +248")
				if n := seen[0].p.Counts; len(n) != 2 || n[0].Findings != 249 || c.get("a omitted") != 248 {
					t.Errorf("counts %+v, omitted %d", n, c.get("a omitted"))
				}
				continue
			}
			events := map[string]bool{}
			for _, a := range seen {
				for _, e := range a.p.Findings {
					events[e.EventID] = true
				}
			}
			if len(seen) != 3 || len(events) != 250 {
				t.Errorf("%d messages with %d events", len(seen), len(events))
			}
		}
	})
}

// However late in a storm it comes, what is critical is on the list: of what is not
// there each one is a warning, and all of them are counted.
// fault: 84
func TestStormLeavesOutTheLeast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const many, bad = 250, 237
		var storm []locksteward.Transition
		for n := range uint64(many) {
			tr := fire(fmt.Sprintf("k%03d", n), n+1)
			tr.Finding.Severity = locksteward.SeverityWarning
			if n == bad {
				tr.Finding.Severity = locksteward.SeverityCritical
			}
			storm = append(storm, tr)
		}
		for _, firstSweep := range []bool{false, true} {
			f := &fake{}
			var c suppressions
			d := grouped(t, Grouping{By: []string{"class"}}, person(), c.hooks(), f)
			stop := d.run()
			d.box.change(d.Events(storm, func(locksteward.Finding) (bool, time.Duration) { return firstSweep, -1 }, nil)...)
			d.Wake()
			time.Sleep(time.Minute)
			stop()
			seen := f.seen()
			if len(seen) != 1 {
				t.Fatalf("first sweep %t: %d messages, want 1", firstSweep, len(seen))
			}
			p, counted := seen[0].p, map[string]int{}
			for _, n := range p.Counts {
				counted[n.Severity] += n.Findings
			}
			if len(p.Findings) != 2 || p.Findings[0].Severity != "critical" || p.Findings[0].Key.Key != "k237" {
				t.Errorf("first sweep %t: listed %q, want k237 first", firstSweep, f.received())
			}
			for _, e := range p.Findings {
				counted[e.Severity]-- // what is left then is what is not on the list
			}
			if counted["critical"] != 0 || counted["warning"] != p.Omitted || p.Omitted != many-2 || c.get("a omitted") != many-2 {
				t.Errorf("first sweep %t: left out %v, omitted %d in the message and %d in the counter", firstSweep, counted, p.Omitted, c.get("a omitted"))
			}
		}
	})
}

// More groups than a service takes messages come in one digest, and what waits
// while the service is away comes in one when it is back.
func TestDigestWhenThrottled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		f := &fake{answer: func(int, Payload) error {
			if away.Load() {
				return failing(Reason5xx)
			}
			return nil
		}}
		d := grouped(t, Grouping{By: []string{"key"}}, person(), Hooks{}, f)
		stop := d.run()
		var many []locksteward.Transition
		for n := range uint64(10) {
			many = append(many, fire(fmt.Sprint("k", n), n+1))
		}
		d.notify(many...)
		time.Sleep(time.Minute)
		wantReported(t, f, "digest firing: k0 firing, k1 firing +8")
		away.Store(true)
		for n := range uint64(10) {
			d.notify(resolve(fmt.Sprint("k", n), n+20))
			time.Sleep(time.Second)
		}
		time.Sleep(10 * time.Minute)
		away.Store(false)
		time.Sleep(30 * time.Minute)
		stop()
		got := f.received()
		var arrived []string
		for i, text := range got {
			if i == len(got)-1 || got[i+1] != text {
				arrived = append(arrived, text)
			}
		}
		if len(arrived) != 3 || !strings.HasPrefix(arrived[1], "news resolved: k0 resolved") || arrived[2] != "digest resolved: k1 resolved, k2 resolved +7" {
			t.Errorf("arrived %q", arrived)
		}
	})
}

// What the first sweep finds is one message; its ends are sent as all others are.
func TestFirstSweepIsOneDigest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		d := grouped(t, DefaultGrouping(), person(), Hooks{}, f)
		stop := d.run()
		var found []locksteward.Transition
		for n := range uint64(30) {
			tr := fire(fmt.Sprint("k", n), n+1)
			tr.Finding.Class = fmt.Sprint("c", n%3)
			found = append(found, tr)
		}
		d.box.change(d.Events(found, func(locksteward.Finding) (bool, time.Duration) { return true, -1 }, nil)...)
		d.Wake()
		time.Sleep(time.Hour)
		wantReported(t, f, "first_sweep firing: k0 firing, k1 firing +28")
		if p := f.seen()[0].p; p.Type != "findings.first_sweep" || len(p.Counts) != 3 || p.Group.Firing != 30 {
			t.Errorf("got %+v", p)
		}
		end := found[5]
		end.Finding.Status, end.EventID = locksteward.StatusResolved, "end"
		d.notify(end)
		time.Sleep(24 * time.Hour)
		stop()
		wantReported(t, f, "first_sweep firing: k0 firing, k1 firing +28", "news resolved: k5 resolved")
	})
}

// While the first sweep is under way its digest comes after a minute, and once more when the sweep has ended; for what is
// critical it does not wait.
func TestFirstSweepWhileItsSweepIsUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		d := grouped(t, DefaultGrouping(), person(), Hooks{}, f)
		stop := d.run()
		defer stop()
		began := time.Now()
		found := func(key string, n uint64, severity locksteward.Severity) {
			tr := fire(key, n)
			tr.Finding.Severity = severity
			d.box.change(d.Events([]locksteward.Transition{tr}, func(locksteward.Finding) (bool, time.Duration) {
				return true, time.Since(began)
			}, nil)...)
			d.Wake()
		}
		var want []string
		quiet := func(long time.Duration) {
			t.Helper()
			time.Sleep(long)
			wantReported(t, f, want...)
		}
		sent := func(at time.Duration, what string) {
			t.Helper()
			quiet(at - time.Since(began) - time.Millisecond)
			want = append(want, what)
			quiet(2 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		found("a", 1, locksteward.SeverityWarning)
		time.Sleep(30 * time.Second)
		found("b", 2, locksteward.SeverityWarning)
		sent(time.Minute, "first_sweep firing: a firing, b firing")
		time.Sleep(5 * time.Second)
		found("c", 3, locksteward.SeverityInfo)
		quiet(20 * time.Minute)
		at := time.Since(began)
		found("d", 4, locksteward.SeverityCritical)
		sent(at+10*time.Second, "first_sweep firing: d firing, c firing")
		found("e", 5, locksteward.SeverityCritical) // a minute after the one before
		sent(at+70*time.Second, "first_sweep firing: e firing")
		found("f", 6, locksteward.SeverityWarning)
		quiet(20 * time.Minute)
		d.box.hurry(FirstSweepGroup("redis"), FirstSweepWait)
		d.Wake()
		sent(time.Since(began)+10*time.Second, "first_sweep firing: f firing")
	})
}

// What is sent and when never depends on how it was grouped: whatever happens, each
// event of a finding arrives once and in its order.
func TestGroupsLoseNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		by := rapid.SampledFrom([][]string{{"target"}, {"class", "rule"}, {"key"}, {"fingerprint"}}).Draw(rt, "by")
		size := rapid.IntRange(1, 5).Draw(rt, "cap")
		open := map[string]bool{}
		var parts [][]locksteward.Transition
		n := uint64(0)
		want := map[string][]string{}
		for range rapid.IntRange(1, 12).Draw(rt, "parts") {
			var part []locksteward.Transition
			for range rapid.IntRange(1, 8).Draw(rt, "n") {
				n++
				k := rapid.SampledFrom([]string{"k0", "k1", "k2"}).Draw(rt, "key")
				tr := fire(k, n)
				if open[k] {
					tr = resolve(k, n)
				}
				open[k] = !open[k]
				part = append(part, tr)
				want[k] = append(want[k], tr.EventID)
			}
			parts = append(parts, part)
		}
		waits := rapid.SliceOfN(rapid.IntRange(0, 40), len(parts), len(parts)).Draw(rt, "waits")
		fails := rapid.SliceOfN(rapid.Bool(), 10, 10).Draw(rt, "fails")
		away := rapid.IntRange(-1, len(parts)-1).Draw(rt, "away")
		got := map[string][]string{}
		synctest.Test(t, func(t *testing.T) {
			f := &fake{answer: func(n int, p Payload) error {
				if n <= len(fails) && fails[n-1] {
					return failing(Reason5xx)
				}
				return nil
			}}
			d := grouped(t, Grouping{By: by, Wait: 5 * time.Second, Interval: 20 * time.Second}, traits{cap: size}, Hooks{}, f)
			stop := d.run()
			var unsaved []locksteward.FindingEvent
			for i, part := range parts {
				if i == away {
					d.box.fail(errors.New("the disk is full"))
				}
				if i >= away && away >= 0 {
					changes := d.events(part...)
					unsaved = append(unsaved, changes...)
					d.SendFromMemory(changes)
				} else {
					d.notify(part...)
				}
				time.Sleep(time.Duration(waits[i]) * time.Second)
			}
			rest, tried := d.Unsaved(unsaved)
			d.box.fail(nil)
			d.box.put(tried...)
			d.box.change(rest...)
			d.Saved(unsaved, tried)
			d.Wake()
			time.Sleep(3 * time.Hour)
			stop()
			ids := map[string]bool{}
			for i, a := range f.seen() {
				if i < len(fails) && fails[i] || ids[a.id] {
					continue
				}
				ids[a.id] = true
				for _, e := range a.p.Findings {
					got[e.Key.Key] = append(got[e.Key.Key], e.EventID)
				}
			}
		})
		for k, events := range want {
			if strings.Join(got[k], " ") != strings.Join(events, " ") {
				rt.Fatalf("%s: got %v, want %v", k, got[k], events)
			}
		}
	})
}

// A key is the same for one finding whatever changes about it, and never too long.
func TestGroupKey(t *testing.T) {
	t.Parallel()
	g := DefaultGrouping()
	a, b := fire("k", 1).Finding, resolve("k", 2).Finding
	b.Severity, b.Team = locksteward.SeverityWarning, "x"
	other := a
	other.Class = `orders" rule="x`
	if g.key(a) != g.key(b) || g.key(a) == g.key(other) || g.key(a) != `class="orders" rule="ttl/none" target="redis"` {
		t.Errorf("keys %s, %s, %s", g.key(a), g.key(b), g.key(other))
	}
	g.By = []string{"key"}
	a.Key, b.Key = strings.Repeat("é", 5000), strings.Repeat("é", 5000)+"x"
	if x, y := g.key(a), g.key(b); len(x) > maxGroupKey || len(y) > maxGroupKey || x == y {
		t.Errorf("keys of %d and %d bytes", len(x), len(y))
	}
}

// A receiver is notified of what matches, and of the end of what it knows, whatever
// its labels are by then.
func TestMatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		var c suppressions
		d := postOf(t, c.hooks(), f)
		a := newWriter(Config{Grouping: Grouping{By: []string{"key"}}, FirstSweep: FirstSweepFire},
			Receiver{Name: "a", Lang: "en", KeyNames: KeyNamesFull, Match: []string{"severity=critical", "class=~ord.*"}}, machine(), d.hooks)
		d.apply(DefaultDrainTimeout, writers{[]writer{a}, FirstSweepFire}, []*destination{newDestination(f, a)})
		stop := d.run()
		other := fire("other", 1)
		other.Finding.Class = "jobs"
		end := resolve("k", 3)
		end.Finding.Severity = locksteward.SeverityWarning
		d.notify(other, fire("k", 2))
		time.Sleep(time.Second)
		d.notify(end, resolve("other", 4))
		time.Sleep(time.Second)
		stop()
		wantReported(t, f, "news firing: k firing", "news resolved: k resolved")
		if c.get("a match") != 1 || c.get("a unknown") != 1 {
			t.Errorf("suppressed %v", c.n)
		}
	})
}

// While a receiver takes nothing, what fires still is not sent again: it would all
// come at once.
func TestNoRepeatsPileUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var well atomic.Bool
		f := &fake{answer: func(int, Payload) error {
			if well.Load() {
				return nil
			}
			return failing(Reason5xx)
		}}
		d := grouped(t, Grouping{By: []string{"key"}, Repeat: 10 * time.Minute}, machine(), Hooks{}, f)
		stop := d.run()
		d.notify(fire("k", 1), fire("l", 2), fire("m", 3))
		time.Sleep(3 * time.Hour)
		well.Store(true)
		time.Sleep(5 * time.Minute)
		stop()
		arrived := map[string]bool{}
		for _, a := range f.seen() {
			arrived[a.id] = true
		}
		if len(arrived) > 6 {
			t.Errorf("%d messages", len(arrived))
		}
	})
}
