package alert

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/locksteward/locksteward"
)

// outage is a receiver that takes nothing while it is away, and remembers what it took.
type outage struct {
	fake
	away atomic.Bool
}

func newOutage() *outage {
	o := &outage{}
	o.answer = func(int, Payload) error {
		time.Sleep(10 * time.Millisecond) // so that what is under way at once is so in any order of goroutines
		if o.away.Load() {
			return failing(ReasonRefused)
		}
		return nil
	}
	return o
}

// took describes what arrived since the n-th attempt, and when: "lock status", or
// "type request".
func (o *outage) took(n int) (what []string, at []time.Time) {
	for _, a := range o.seen()[n:] {
		if r := a.p.Release; r != nil {
			what = append(what, a.p.Type+" "+r.Request.ID)
		}
		for _, e := range a.p.Findings {
			what = append(what, e.Key.Key+" "+e.Status)
		}
		for len(at) < len(what) {
			at = append(at, a.at)
		}
	}
	return what, at
}

func warns(key string, n uint64) locksteward.Transition {
	t := fire(key, n)
	t.Finding.Severity = locksteward.SeverityWarning
	return t
}

// asked is what is notified of a request.
func asked(kind, id string) Notice {
	n := glass()
	n.EventID, n.Kind, n.Loud, n.Request.ID = id+"/"+kind, kind, false, id
	return n
}

// When a receiver is back after an outage it is sent the worst first, as fast as it
// permits, and is asked for no decision on a request that is over.
func TestAfterAnOutageTheWorstComesFirst(t *testing.T) {
	t.Parallel()
	for name, k := range kinds {
		m := k.traits
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var over atomic.Bool
				o := newOutage()
				hooks := Hooks{RequestEnded: func(_ context.Context, id string) bool { return id == "r-over" && over.Load() }}
				m.cap = 100
				d := grouped(t, Grouping{By: []string{"key"}}, m, hooks, o)
				stop := d.run()
				o.away.Store(true)
				for n := range uint64(3) {
					d.notify(warns(fmt.Sprint("early", n), n+1))
				}
				d.box.put(slices.Concat(d.Release(asked(typeRequested, "r-over")), d.Release(asked(typeRequested, "r-open")))...)
				d.Wake()
				time.Sleep(5 * time.Minute)
				var many []locksteward.Transition
				for n := range uint64(20) {
					many = append(many, warns(fmt.Sprint("late", n), n+10))
				}
				d.notify(many...)
				d.notify(resolve("early0", 40))
				time.Sleep(5 * time.Minute)
				d.notify(fire("critical", 50))
				time.Sleep(5 * time.Minute)
				over.Store(true)
				d.box.put(d.Release(asked(typeFinal, "r-over"))...)
				d.Wake()
				time.Sleep(5 * time.Minute)
				o.away.Store(false)
				failed := len(o.seen())
				back := time.Now()
				time.Sleep(10 * time.Minute)
				stop()
				what, at := o.took(failed)
				// One message found out that the receiver is back; those of its order that
				// came before the critical one are sent before it.
				n := slices.Index(what, "critical firing")
				if n < 0 {
					t.Fatalf("arrived %q", what)
				}
				first := o.seen()[failed]
				if wait := at[n].Sub(first.at); wait > 5*time.Second {
					t.Errorf("the critical one came %s after the first (%s after the end), behind %q", wait, at[n].Sub(back), what[:n])
				}
				most := maxInFlight // those that are sent beside it
				if m.people {
					most = 2
				}
				if n := slices.IndexFunc(o.seen()[failed:], func(a attempt) bool { return strings.Contains(a.body, `"critical"`) }); n > most {
					t.Errorf("%d messages came before the critical one: %q", n, what)
				}
				if slices.Contains(what, typeRequested+" r-over") || !slices.Contains(what, typeFinal+" r-over") || !slices.Contains(what, typeRequested+" r-open") {
					t.Errorf("arrived %q", what)
				}
				open := slices.Index(what, typeRequested+" r-open")
				if wait := at[open].Sub(first.at); wait > 10*time.Second || slices.Index(what[1:], typeFinal+" r-over") < open-1 && what[0] != typeFinal+" r-over" {
					t.Errorf("the decision was asked for after %s: %q", wait, what)
				}
				if !m.people {
					for i := range what[1:] { // all was due at the end of the outage
						if wait := at[i].Sub(first.at); wait > time.Second {
							t.Errorf("%s came after %s", what[i], wait)
						}
					}
				}
				if a, b := slices.Index(what, "early0 firing"), slices.Index(what, "early0 resolved"); b < a {
					t.Errorf("a resolve before its fire: %q", what)
				}
				if got := d.box.states("a"); got["waiting"] != 0 || got["dead"] != 1 {
					t.Errorf("kept %v", got)
				}
			})
		})
	}
}

// What arrives first ends the backoff of all others, also where too few failed to leave
// the receiver alone; a receiver that asked for a pause gets it.
func TestFirstSuccessEndsEveryBackoff(t *testing.T) {
	t.Parallel()
	for name, pause := range map[string]time.Duration{"refused": 0, "asked for a pause": 20 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newOutage()
				o.answer = func(int, Payload) error {
					if o.away.Load() {
						return &DeliveryError{Reason: Reason429, Status: 429, Retryable: true, RetryAfter: pause, Endpoint: "https://h"}
					}
					return nil
				}
				d := postOf(t, Hooks{}, o)
				stop := d.run()
				o.away.Store(true)
				d.notify(fire("k", 1), fire("l", 2))
				time.Sleep(time.Hour)
				synctest.Wait()
				n := len(o.seen())
				o.away.Store(false)
				back := time.Now()
				time.Sleep(time.Hour)
				stop()
				what, at := o.took(n)
				if len(what) != 2 {
					t.Fatalf("arrived %q", what)
				}
				if wait := at[1].Sub(at[0]); wait > emptyPause {
					t.Errorf("%s arrived %s after %s", what[1], wait, what[0])
				}
				if last := o.seen()[n-1].at; pause > 0 && at[0].Sub(last) < pause {
					t.Errorf("sent %s after it asked for %s", at[0].Sub(last), pause)
				}
				if wait := at[0].Sub(back); wait > max(backoffCap, pause)+emptyPause {
					t.Errorf("the first after %s", wait)
				}
			})
		})
	}
}

// A message that fails although others arrive is tried again at its own pace.
func TestOneBadMessageIsNotHurriedByOthers(t *testing.T) {
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
		for n := range uint64(600) {
			d.notify(fire(fmt.Sprint("k", n), 10+n))
			time.Sleep(time.Second)
		}
		stop()
		bad := slices.DeleteFunc(f.seen(), func(a attempt) bool { return a.p.Findings[0].Key.Key != "bad" })
		if len(bad) > 25 { // 1 s, 2 s, 4 s and so on come to about 12
			t.Errorf("%d attempts in ten minutes", len(bad))
		}
	})
}

// A receiver is gone for good when it says so three times in a row, whatever it
// answers before and after.
func TestGoneIsInARow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answers := []error{
			refusing(Reason4xx), refusing(Reason4xx), failing(ReasonTimeout), refusing(Reason4xx), failing(Reason5xx), refusing(Reason4xx), nil,
			refusing(Reason4xx), refusing(Reason4xx), refusing(Reason4xx),
		}
		for _, err := range answers {
			if e, ok := err.(*DeliveryError); ok && !e.Retryable {
				e.Status = http.StatusGone
			}
		}
		f := &fake{answer: func(n int, _ Payload) error { return answers[min(n, len(answers))-1] }}
		d := postOf(t, Hooks{}, f)
		stop := d.run()
		for n := range uint64(10) {
			d.notify(fire(fmt.Sprint("k", n), n+1))
			time.Sleep(10 * time.Minute)
			if tried, s := len(f.seen()), d.Receivers()[0]; s.Gone != (tried >= len(answers)) {
				t.Errorf("after %d attempts: %+v", tried, s)
			}
		}
		stop()
		if len(f.seen()) < len(answers) {
			t.Errorf("%d attempts", len(f.seen()))
		}
	})
}
