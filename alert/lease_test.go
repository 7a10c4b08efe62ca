package alert

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/locksteward/locksteward"
)

// lateRenewal is a renewal that did not come, found some time after another one's.
func lateRenewal(n int, after time.Duration) locksteward.Transition {
	t := warns(fmt.Sprintf("k%03d", n), uint64(n+1))
	t.Finding.Rule, t.At = "renewal/failing", t.At.Add(after)
	return t
}

// A finding about a lock whose lease ends within twice the wait does not wait for
// others; one that has more time left does.
func TestALeaseThatEndsSoonDoesNotWait(t *testing.T) {
	t.Parallel()
	for left, want := range map[time.Duration]time.Duration{
		10 * time.Second: 0, time.Second: 0,
		10*time.Second + 1: DefaultGroupWait, time.Minute: DefaultGroupWait,
		0: DefaultGroupWait, -time.Second: DefaultGroupWait, // over, or not known
	} {
		for name, m := range map[string]traits{"person": person(), "machine": machine()} {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{}
				d := grouped(t, DefaultGrouping(), m, Hooks{}, f)
				stop := d.run()
				one, began := lateRenewal(0, 0), time.Now()
				d.box.change(d.Events([]locksteward.Transition{one}, nil, func(locksteward.Finding) time.Time { return one.At.Add(left) })...)
				d.Wake()
				time.Sleep(time.Minute)
				stop()
				if got := f.seen(); len(got) != 1 || got[0].at.Sub(began) != want {
					t.Errorf("%s, %s left: %d messages, %v", name, left, len(got), f.received())
				}
			})
		}
	}
}

// One client that reconnects is 106 renewals that are late, found one after the other
// within the wait: one notification to people, and one when they are over. Where their
// leases end soon the first is sent at once and the others together, not one by one.
func TestEqualFindingsOfOneCauseAreOneNotification(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		left      time.Duration
		person    int // notifications to people
		program   int // messages to a program, of at most 100 findings
		firstFull int // findings of the first message to a program
	}{
		"leases of 30 s":         {20 * time.Second, 1, 2, 100},
		"leases that end before": {8 * time.Second, 2, 3, 1},
	} {
		for who, m := range map[string]traits{"person": person(), "machine": machine()} {
			t.Run(name+" "+who, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					f := &fake{}
					d := grouped(t, DefaultGrouping(), m, Hooks{}, f)
					stop := d.run()
					began := time.Now()
					const n, apart = 106, 40 * time.Millisecond
					for i := range n {
						one := lateRenewal(i, time.Duration(i)*apart)
						d.box.change(d.Events([]locksteward.Transition{one}, nil, func(locksteward.Finding) time.Time { return one.At.Add(c.left) })...)
						d.Wake()
						time.Sleep(apart)
					}
					time.Sleep(7 * time.Second)
					fired := len(f.seen())
					for i := range n {
						over := lateRenewal(i, time.Minute)
						over.EventID, over.Finding.Status = fmt.Sprint("over", i), locksteward.StatusResolved
						d.write(over)
					}
					d.Wake()
					time.Sleep(2 * time.Minute)
					stop()
					events, full := map[string]bool{}, 0
					for i, a := range f.seen() {
						for _, e := range a.p.Findings {
							events[e.EventID] = true
						}
						if i < fired && a.at.Sub(began) > 2*DefaultGroupWait {
							t.Errorf("message %d after %s", i, a.at.Sub(began))
						}
						full += a.p.Counts[0].Findings
					}
					if who == "person" {
						if got := f.received(); fired != c.person || len(got) != fired+1 || full != 2*n || !strings.HasPrefix(got[fired], "news resolved") {
							t.Errorf("%d of %d notifications fire, about %d findings: %q", fired, len(got), full, got)
						}
						return
					}
					// A program is notified of each, so many in a message as it takes.
					if fired != c.program || len(f.seen()) != fired+2 || len(events) != 2*n || len(f.seen()[0].p.Findings) != c.firstFull {
						t.Errorf("%d of %d messages fire, %d events: %d first", fired, len(f.seen()), len(events), len(f.seen()[0].p.Findings))
					}
				})
			})
		}
	}
}
