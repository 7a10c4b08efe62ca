package alert

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/locksteward/locksteward"
)

// fault: 80
func TestRetriesKeepIDAndBytesAndBackOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c counts
		f := &fake{answer: func(n int, _ Payload) error {
			if n < 8 {
				return failing(Reason5xx)
			}
			return nil
		}}
		d := postOf(t, c.hooks(), f)
		stop := d.run()
		d.notify(fire("k", 1))
		time.Sleep(time.Hour)
		stop()
		got := f.seen()
		if len(got) != 8 {
			t.Fatalf("%d attempts, want 8", len(got))
		}
		for i, a := range got[1:] {
			if a.id != got[0].id || a.body != got[0].body {
				t.Errorf("attempt %d has another id or body", i+2)
			}
			wait, limit := a.at.Sub(got[i].at), min(backoffCap, backoffBase<<i)+emptyPause
			if wait <= 0 || wait > limit {
				t.Errorf("attempt %d came after %s, want (0, %s]", i+2, wait, limit)
			}
		}
		if c.get("a retried http_5xx") != 7 || c.get("a delivered ok") != 1 {
			t.Errorf("counted %v", c.all())
		}
	})
}

func TestBackoffIsFullJitter(t *testing.T) {
	t.Parallel()
	for _, attempts := range []int{1, 2, 9, 10, 40, 1 << 20} {
		limit := backoffCap
		if attempts < 10 {
			limit = min(limit, backoffBase<<(attempts-1))
		}
		var low, high bool
		for range 200 {
			d := backoff(attempts)
			if d <= 0 || d > limit {
				t.Fatalf("after %d attempts: %s, want (0, %s]", attempts, d, limit)
			}
			low = low || d < limit/4
			high = high || d > limit*3/4
		}
		if !low || !high {
			t.Errorf("after %d attempts: no spread over (0, %s]", attempts, limit)
		}
	}
}

// What a receiver asks for binds all that is for it.
// fault: 80
func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(n int, _ Payload) error {
			if n == 1 {
				return &DeliveryError{Reason: Reason429, Status: 429, Retryable: true, RetryAfter: 90 * time.Second, Endpoint: "https://h"}
			}
			return nil
		}}
		d := postOf(t, Hooks{}, f)
		stop := d.run()
		d.notify(fire("k", 1))
		synctest.Wait()
		d.notify(fire("l", 2))
		time.Sleep(10 * time.Minute)
		stop()
		got := f.seen()
		if len(got) != 3 || got[1].at.Sub(got[0].at) < 90*time.Second {
			t.Errorf("attempts %v", got)
		}
	})
}

func TestCapsEndTheAttempts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits Endpoint
		check  func(attempts []attempt) bool
	}{
		"attempts": {Endpoint{MaxAttempts: 3}, func(a []attempt) bool { return len(a) == 3 }},
		"age": {Endpoint{MaxAge: 10 * time.Minute}, func(a []attempt) bool {
			return len(a) > 3 && a[len(a)-1].at.Sub(a[0].at) <= 10*time.Minute
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var n counts
				f := &fake{answer: func(_ int, p Payload) error {
					if p.Findings[0].Key.Key == "bad" {
						return failing(ReasonRefused)
					}
					return nil
				}}
				d := postWith(t, c.limits, n.hooks(), f)
				stop := d.run()
				d.notify(fire("bad", 1))
				synctest.Wait()
				// The resolve waits behind its fire, another finding does not.
				d.notify(resolve("bad", 2), fire("good", 3))
				synctest.Wait()
				// What arrives shows that the receiver works: the first is tried again.
				if got := strings.Join(f.events(), ", "); got != "bad firing, good firing, bad firing" {
					t.Errorf("at once: %s", got)
				}
				time.Sleep(24 * time.Hour)
				stop()
				bad := slices.DeleteFunc(f.seen(), func(a attempt) bool { return a.p.Findings[0].Key.Key != "bad" })
				if !c.check(bad) {
					t.Errorf("%d attempts", len(bad))
				}
				// The resolve of what never arrived is withheld: both can be retried.
				if slices.Contains(f.events(), "bad resolved") || d.box.states("a")["dead"] != 2 || !errors.Is(d.box.why(2), errNoFire) {
					t.Errorf("sent %v, kept %v, %v", f.events(), d.box.states("a"), d.box.why(2))
				}
				if n.get("a dropped refused") != 1 || n.get("a dropped no_fire") != 1 || n.get("a delivered ok") != 1 {
					t.Errorf("counted %v", n.all())
				}
			})
		})
	}
}

// A fire whose attempt may have arrived is followed by its resolve, or the
// receiver would show it for ever. That holds for attempts of another process, too.
func TestResolveFollowsAnUncertainFire(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(d *post){
		"timeout": func(*post) {},
		"attempt before a restart": func(d *post) {
			d.box.rows[0].Attempts = 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &fake{answer: func(n int, p Payload) error {
					switch {
					case p.Status == "resolved":
						return nil
					case n == 1 && name == "timeout":
						return failing(ReasonTimeout)
					default:
						return refusing(Reason4xx)
					}
				}}
				d := postOf(t, Hooks{}, f)
				d.box.put(d.alone(fire("k", 1), resolve("k", 2))...)
				before(d)
				stop := d.run()
				time.Sleep(time.Minute)
				stop()
				if got := strings.TrimPrefix(strings.Join(f.events(), ", "), "k firing, "); !strings.HasSuffix(got, "k resolved") {
					t.Errorf("got %s", got)
				}
			})
		})
	}
}

// A raise of a finding that was notified before the restart and is given up: its
// resolve is sent.
func TestResolveFollowsALostRaise(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(_ int, p Payload) error {
			if p.Status == "firing" {
				return refusing(Reason4xx)
			}
			return nil
		}}
		d := postOf(t, Hooks{}, f)
		stop := d.run()
		raise := fire("k", 1)
		raise.Finding.FiredAt = raise.At.Add(-time.Hour)
		d.notify(raise, resolve("k", 2))
		time.Sleep(time.Minute)
		stop()
		if got := strings.Join(f.events(), ", "); got != "k firing, k resolved" {
			t.Errorf("got %s", got)
		}
	})
}

func TestPermanentFailureIsNotRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c counts
		f := &fake{answer: func(int, Payload) error { return refusing(Reason4xx) }}
		d := postOf(t, c.hooks(), f)
		stop := d.run()
		d.notify(fire("k", 1))
		time.Sleep(time.Hour)
		stop()
		if len(f.seen()) != 1 || c.get("a dropped http_4xx") != 1 || d.box.states("a")["dead"] != 1 {
			t.Errorf("%d attempts, counted %v, kept %v", len(f.seen()), c.all(), d.box.states("a"))
		}
	})
}

// fault: 80
func TestADeadReceiverDelaysNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		alive := &fake{}
		var backlog atomic.Pointer[[]locksteward.Backlog]
		d := postOf(t, Hooks{Backlogs: func(b []locksteward.Backlog) { backlog.Store(&b) }}, &hanging{}, alive)
		stop := d.run()
		start := time.Now()
		for n := range uint64(100) {
			d.notify(fire(fmt.Sprint("k", n), n))
		}
		synctest.Wait()
		if len(alive.events()) != 100 || time.Since(start) != 0 {
			t.Errorf("%d events after %s", len(alive.events()), time.Since(start))
		}
		time.Sleep(reconcileSoon)
		synctest.Wait()
		waits := *backlog.Load()
		if len(waits) != 2 || waits[0].Waiting != 100 || waits[0].Oldest != reconcileSoon || waits[1].Waiting != 0 || waits[1].Receiver != "b" {
			t.Errorf("backlog %+v", waits)
		}
		stop()
	})
}

// hanging is a receiver that never answers.
type hanging struct{}

func (*hanging) send(ctx context.Context, _ outgoing) error {
	<-ctx.Done()
	return transportError("https://h", ctx.Err())
}
func (*hanging) close() {}

// A message that a receiver answers with 5xx again and again holds up those of its
// own finding alone.
func TestOneBadMessageDelaysNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(_ int, p Payload) error {
			if p.Findings[0].Key.Key == "bad" {
				return failing(Reason5xx)
			}
			return nil
		}}
		d := postOf(t, Hooks{}, f)
		stop := d.run()
		d.notify(fire("bad", 1))
		for n := range uint64(50) {
			time.Sleep(10 * time.Second)
			start := time.Now()
			d.notify(fire(fmt.Sprint("k", n), 10+n))
			synctest.Wait()
			if last := f.seen()[len(f.seen())-1]; !slices.Contains(f.events(), fmt.Sprint("k", n, " firing")) || last.at.After(start) {
				t.Fatalf("message %d did not go at once", n)
			}
		}
		stop()
	})
}

// A receiver that takes nothing is asked now and then, however much waits for it,
// and gets all of it when it works again, each finding in its order.
func TestCircuitSparesADeadReceiver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c counts
		var well atomic.Bool
		f := &fake{answer: func(int, Payload) error {
			if well.Load() {
				return nil
			}
			return failing(ReasonRefused)
		}}
		d := postWith(t, Endpoint{MaxAttempts: 1 << 20}, c.hooks(), f)
		stop := d.run()
		var all []locksteward.Transition
		for n := range uint64(50) {
			all = append(all, fire(fmt.Sprint("k", n), n), resolve(fmt.Sprint("k", n), 100+n))
		}
		d.notify(all...)
		time.Sleep(time.Hour)
		synctest.Wait()
		n := len(f.seen())
		if n < 60 || n > 200 {
			t.Errorf("%d attempts in an hour for 100 messages, want about one in half a minute", n)
		}
		if state := d.Receivers(); len(state) != 1 || !state[0].CircuitOpen || state[0].Name != "a" {
			t.Errorf("state %+v", state)
		}
		well.Store(true)
		time.Sleep(circuitCap + emptyPause)
		synctest.Wait()
		if state := d.Receivers(); state[0].CircuitOpen {
			t.Errorf("state %+v", state)
		}
		if got := d.box.states("a"); got["delivered"] != 100 {
			t.Errorf("kept %v", got)
		}
		open := map[string]bool{}
		for _, a := range f.seen()[n:] {
			for _, e := range a.p.Findings {
				if e.Status == "resolved" && !open[e.Key.Key] {
					t.Errorf("%s: its resolve before its fire", e.Key.Key)
				}
				open[e.Key.Key] = e.Status == "firing"
			}
		}
		stop()
	})
}

// What waited for max_age behind an open circuit is given up.
func TestTooOldBehindACircuit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c counts
		f := &fake{answer: func(int, Payload) error { return failing(ReasonRefused) }}
		d := postWith(t, Endpoint{MaxAge: time.Hour, MaxAttempts: 1 << 20}, c.hooks(), f)
		stop := d.run()
		for n := range uint64(40) {
			d.notify(fire(fmt.Sprint("k", n), n))
		}
		time.Sleep(50 * time.Minute)
		if got := d.box.states("a"); got["waiting"] != 40 {
			t.Errorf("after 50 minutes %v", got)
		}
		time.Sleep(20 * time.Minute)
		stop()
		if got := d.box.states("a"); got["dead"] != 40 {
			t.Errorf("after 70 minutes %v", got)
		}
		if n := c.get("a dropped too_old") + c.get("a dropped refused"); n != 40 {
			t.Errorf("counted %v", c.all())
		}
	})
}

func TestOrderIsKeptPerFinding(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		// Draws stay outside the bubble: rapid ends a case by panicking.
		open := map[string]bool{}
		var all []locksteward.Transition
		want := map[string][]string{}
		for n := range uint64(rapid.IntRange(1, 60).Draw(rt, "n")) {
			k := rapid.SampledFrom([]string{"k0", "k1", "k2", "k3"}).Draw(rt, "key")
			tr := fire(k, n)
			if open[k] && rapid.Bool().Draw(rt, "resolve") {
				tr = resolve(k, n)
			}
			open[k] = tr.Finding.Status == locksteward.StatusFiring
			all = append(all, tr)
			want[k] = append(want[k], tr.EventID)
		}
		fails := rapid.SliceOfN(rapid.Bool(), 20, 20).Draw(rt, "fails")
		chunk := rapid.IntRange(1, 9).Draw(rt, "chunk")
		restart := rapid.IntRange(0, 3).Draw(rt, "restart")
		got := map[string][]string{}
		synctest.Test(t, func(t *testing.T) {
			f := &fake{answer: func(n int, p Payload) error {
				if n <= len(fails) && fails[n-1] {
					return failing(Reason5xx)
				}
				return nil
			}}
			d := postOf(t, Hooks{}, f)
			stop := d.run()
			for i, part := range slices.Collect(slices.Chunk(all, chunk)) {
				d.notify(part...)
				if i == restart {
					stop()
					again := postOf(t, Hooks{}, f)
					again.box = d.box
					again.Sender.outbox, again.workers()[0].outbox = d.box, d.box
					d = again
					stop = d.run()
				}
			}
			for n := 0; n < 300 && d.box.states("a")["delivered"] < len(all); n++ {
				time.Sleep(time.Minute)
			}
			stop()
			for i, a := range f.seen() {
				if i >= len(fails) || !fails[i] {
					got[a.p.Findings[0].Key.Key] = append(got[a.p.Findings[0].Key.Key], a.p.Findings[0].EventID)
				}
			}
		})
		if !maps.EqualFunc(got, want, slices.Equal[[]string]) {
			rt.Fatalf("got %v, want %v", got, want)
		}
	})
}

// A shutdown sends what is due and leaves the rest, which the next start sends with
// the ids that it has.
func TestShutdownSendsWhatIsDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var started atomic.Bool
		f := &fake{answer: func(_ int, p Payload) error {
			if p.Findings[0].Key.Key == "k" && !started.Load() {
				return failing(ReasonRefused)
			}
			return nil
		}}
		d := postOf(t, Hooks{}, f)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		d.notify(fire("k", 1), resolve("k", 2), fire("l", 3))
		if err := d.Run(ctx); err != nil {
			t.Fatal(err)
		}
		got := f.events()
		if !slices.Contains(got, "k firing") || !slices.Contains(got, "l firing") || len(got) > 3 || d.box.states("a")["delivered"] != 1 {
			t.Errorf("got %v", got)
		}
		failed := len(got) - 1
		started.Store(true)
		next := postOf(t, Hooks{}, f)
		next.Sender.outbox, next.workers()[0].outbox = d.box, d.box
		stop := next.run()
		time.Sleep(time.Minute)
		stop()
		all := slices.DeleteFunc(f.seen(), func(a attempt) bool { return a.p.Findings[0].Key.Key != "k" })
		if len(all) != failed+2 || d.box.states("a")["delivered"] != 3 || all[failed].id != all[0].id || all[failed+1].p.Status != "resolved" {
			t.Errorf("got %v, kept %v", f.events(), d.box.states("a"))
		}
	})
}

// fault: 83
func TestShutdownIsBoundedAndLosesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c counts
		d := postOf(t, c.hooks(), &hanging{})
		d.drain = 3 * time.Second
		stop := d.run()
		d.notify(fire("k", 1))
		synctest.Wait()
		d.notify(fire("l", 2), fire("m", 3))
		start := time.Now()
		stop()
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("took %s, want 3s", took)
		}
		d.notify(fire("n", 4))
		if got := d.box.states("a"); got["waiting"] != 3 || c.get("a retried shutdown") != 3 {
			t.Errorf("kept %v, counted %v", got, c.all())
		}
		// Nothing is claimed any more: the next start sends them at once, and what came
		// since.
		if got, err := d.box.Claim(t.Context(), "a", time.Minute, 9); err != nil || len(got) != 3 {
			t.Errorf("claimed %d, %v", len(got), err)
		}
		if waits, err := d.box.HasPending(t.Context(), "a"); err != nil || !waits {
			t.Errorf("the last one is lost: %v", err)
		}
	})
}

func TestPendingIsNotReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		d := postOf(t, Hooks{}, f)
		stop := d.run()
		d.notify(transition("k", 1, locksteward.StatusPending))
		d.notify()
		synctest.Wait()
		stop()
		if len(f.seen()) != 0 {
			t.Errorf("sent %v", f.events())
		}
	})
}

func TestRunWithoutReceivers(t *testing.T) {
	t.Parallel()
	d := postOf(t, Hooks{})
	stop := d.run()
	d.notify(fire("k", 1))
	if m := d.Release(glass()); len(m) != 0 {
		t.Errorf("messages for nobody: %v", m)
	}
	stop()
}

// Events of one request come in their order, those that are loud marked.
func TestReleasesAreReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(n int, _ Payload) error {
			if n == 1 {
				return failing(Reason5xx)
			}
			return nil
		}}
		d := postOf(t, Hooks{}, f)
		stop := d.run()
		final := glass()
		final.EventID, final.Kind, final.Loud = "r-1/release.final", "release.final", false
		d.box.put(append(d.Release(glass()), d.Release(final)...)...)
		d.box.put(d.Release(glass())...) // the same thing again
		d.Wake()
		time.Sleep(time.Minute)
		stop()
		got := f.seen()
		if len(got) != 3 || got[0].id != got[1].id || got[2].p.Type != "release.final" || got[2].p.Loud {
			t.Fatalf("%d attempts: %+v", len(got), got)
		}
		if p := got[1].p; p.Type != "release.break_glass" || !p.Loud || p.Release.Request.ID != "r-1" || !p.Release.Request.BreakGlass || p.Seq >= got[2].p.Seq {
			t.Errorf("got %+v", p)
		}
	})
}
