package alert

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// slow takes a while for each message, which arrives anywhere in it.
type slow struct {
	fake
	mu sync.Mutex
	n  int
}

func (s *slow) send(ctx context.Context, out outgoing) error {
	s.mu.Lock()
	s.n++
	n := s.n
	s.mu.Unlock()
	time.Sleep(time.Duration(n*7%10) * 40 * time.Millisecond)
	err := s.fake.send(ctx, out)
	time.Sleep(time.Duration(n*3%10) * 40 * time.Millisecond)
	return err
}

// most is the most messages that arrived in any window.
func most(seen []attempt, window time.Duration) int {
	worst := 0
	for i, a := range seen {
		n := 0
		for _, b := range seen[i:] {
			if b.at.Sub(a.at) < window {
				n++
			}
		}
		worst = max(worst, n)
	}
	return worst
}

// No service gets more than it takes, in a minute or in a second, when findings come
// all the time and releases come thirty at once; and all of it arrives.
func TestPace(t *testing.T) {
	t.Parallel()
	// What the services say they take.
	limits := map[string]rates{
		"webhook": {}, "alertmanager": {}, "email": {perMinute: 30}, "pagerduty": {perMinute: 120},
		"slack": {perMinute: 60, perSecond: 1}, "dingtalk": {perMinute: 20}, "feishu": {perMinute: 100, perSecond: 5}, "wecom": {perMinute: 20},
	}
	for _, name := range kindNames {
		m := kinds[name].traits
		limit, stated := limits[name]
		if !stated {
			t.Fatalf("%s is not in the tables of this test", name)
		}
		for pause, out := range map[string]interface {
			transport
			seen() []attempt
		}{"quick": &fake{}, "slow": &slow{}} {
			t.Run(name+"/"+pause, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { paced(t, m, limit, out, out.seen) })
			})
		}
	}
}

func paced(t *testing.T, m traits, limit rates, out transport, seen func() []attempt) {
	t.Helper()
	d := grouped(t, Grouping{By: []string{"key"}}, m, Hooks{}, out)
	stop := d.run()
	const rounds, atOnce = 3, 30
	for n := range uint64(600) {
		d.notify(fire(fmt.Sprint("k", n), n+1))
		if n%200 == 0 {
			for i := range atOnce {
				notice := glass()
				notice.EventID, notice.Request.ID = fmt.Sprint("e", n, "-", i), fmt.Sprint("r", n, "-", i)
				d.box.put(d.Release(notice)...)
			}
			d.Wake()
		}
		time.Sleep(time.Second)
	}
	time.Sleep(time.Minute)
	stop()
	got := seen()
	if n := most(got, time.Minute); limit.perMinute > 0 && n > limit.perMinute {
		t.Errorf("%d messages in a minute, at most %d are taken", n, limit.perMinute)
	}
	if n := most(got, time.Second); limit.perSecond > 0 && n > limit.perSecond {
		t.Errorf("%d messages in a second, at most %d are taken", n, limit.perSecond)
	} else if limit.perMinute == 0 && n <= 5 {
		t.Errorf("%d messages in the fullest second, and as many are taken as come", n)
	}
	releases, digests, findings := 0, 0, map[string]bool{}
	omitted := 0
	for _, a := range got {
		if a.p.Release != nil {
			releases++
		}
		if a.p.Reason == ReasonDigest {
			digests++
		}
		omitted += a.p.Omitted
		for _, e := range a.p.Findings {
			findings[e.Key.Key] = true
		}
	}
	if releases != rounds*atOnce || len(findings)+omitted != 600 {
		t.Errorf("%d of %d releases and %d + %d of 600 findings arrived", releases, rounds*atOnce, len(findings), omitted)
	}
	if wants := limit.perMinute > 0 && !m.onePerGroup; wants != (digests > 0) {
		t.Errorf("%d digests", digests)
	}
}

// A reload does not begin a second anew, and a test counts.
func TestPaceGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		m := slackKind.traits
		d := grouped(t, Grouping{By: []string{"key"}}, m, Hooks{}, f)
		stop := d.run()
		for n := range uint64(10) {
			d.notify(fire(fmt.Sprint("k", n), n+1))
			time.Sleep(2500 * time.Millisecond)
			if err := d.Test(context.Background(), "a", "ana"); err != nil {
				t.Error(err)
			}
			now := d.workers()[0].dest.Load()
			d.apply(DefaultDrainTimeout, writers{[]writer{now.writer}, FirstSweepDigest}, []*destination{newDestination(f, now.writer)})
		}
		time.Sleep(time.Minute)
		stop()
		if n := most(f.seen(), time.Second); n > 1 {
			t.Errorf("%d messages in a second", n)
		}
	})
}

// What waits for the next second when the agent stops is sent in it.
func TestPaceDoesNotEndADrain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		d := grouped(t, DefaultGrouping(), slackKind.traits, Hooks{}, f)
		stop := d.run()
		for i := range 5 {
			notice := glass()
			notice.EventID, notice.Request.ID = fmt.Sprint("e", i), fmt.Sprint("r", i)
			d.box.put(d.Release(notice)...)
		}
		d.Wake()
		stop()
		if got := len(f.seen()); got != 5 {
			t.Errorf("%d of 5 messages were sent", got)
		}
	})
}

// Nothing is sent to a service in the first seconds of a half hour when it is crowded
// then.
func TestPaceKeepsOffTheHour(t *testing.T) {
	t.Parallel()
	p := newLimiter(rates{perMinute: 100, avoidPeaks: true})
	for _, text := range []string{"10:00:00", "10:30:01", "23:59:59", "10:15:00", "10:00:09"} {
		now, err := time.Parse(time.TimeOnly, text)
		if err != nil {
			t.Fatal(err)
		}
		n, wait := p.free(now, 1)
		off := text == "10:00:00" || text == "10:30:01"
		if off != (n == 0) || off && (wait < time.Second || wait > 8*time.Second) {
			t.Errorf("%s: %d are free, else after %s", text, n, wait)
		}
	}
}
