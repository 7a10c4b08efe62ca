package alert

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testam"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// mind is a fake receiver that forgets: it keeps what it was sent, in order.
type mind struct {
	fake
	pause time.Duration // of one reminder
	again time.Duration

	mu   sync.Mutex
	said []string // "key status" of messages, "key again" of reminders
	away error
	most int // findings of one reminder
}

func (m *mind) send(ctx context.Context, out outgoing) error {
	err := m.fake.send(ctx, out)
	p := out.payload
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range p.Findings {
		if err == nil {
			m.said = append(m.said, e.Key.Key+" "+e.Status)
		}
	}
	return err
}

func (m *mind) interval() time.Duration { return m.again }

func (m *mind) resendFiring(ctx context.Context, firing []PayloadFinding) error {
	if m.pause > 0 {
		select {
		case <-time.After(m.pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away != nil {
		return m.away
	}
	m.most = max(m.most, len(firing))
	for _, e := range firing {
		m.said = append(m.said, e.Key.Key+" again")
	}
	return nil
}

func (m *mind) received() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.said)
}

func (m *mind) count(what string) (n int) {
	for _, s := range m.received() {
		if s == what {
			n++
		}
	}
	return n
}

func (m *mind) goes(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away = err
}

func TestWhatFiresIsReportedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &mind{again: time.Minute}
		plain := &fake{}
		d := postOf(t, Hooks{}, m, plain)
		stop := d.run()
		d.notify(fire("k", 1), fire("l", 2))
		time.Sleep(5*time.Minute + time.Second)
		// The first time comes with the start, before or after the news.
		first := m.count("k again")
		if first < 5 || first > 6 || m.count("l again") != first {
			t.Errorf("sent again %d times in 5 minutes: %v", first, m.received())
		}
		d.notify(resolve("k", 3))
		time.Sleep(5 * time.Minute)
		if k, l := m.count("k again"), m.count("l again"); k != first || l != first+5 {
			t.Errorf("after the end sent again %d and %d times: %v", k, l, m.received())
		}
		stop()
		if n := len(plain.seen()); n != 3 {
			t.Errorf("another receiver was sent %d times", n)
		}
	})
}

// What was read before an end is notified before it, however long that takes.
func TestNothingIsReportedAgainAfterItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// A look takes most of the time, so that most ends come in the middle of one.
		m := &mind{again: time.Second, pause: 900 * time.Millisecond}
		d := postOf(t, Hooks{}, m)
		stop := d.run()
		for n := range uint64(200) {
			key := fmt.Sprint("k", n)
			d.notify(fire(key, 2*n))
			time.Sleep(time.Duration(n%17) * 250 * time.Millisecond)
			d.notify(resolve(key, 2*n+1))
		}
		time.Sleep(time.Minute)
		stop()
		over, again := map[string]bool{}, 0
		for _, s := range m.received() {
			key, what, _ := strings.Cut(s, " ")
			switch what {
			case "resolved":
				over[key] = true
			case "again":
				again++
				if over[key] {
					t.Errorf("%s was sent again after its end", key)
				}
			}
		}
		if len(over) != 200 || again < 100 {
			t.Errorf("%d ends, sent again %d times: the test shows nothing", len(over), again)
		}
		// What the outbox knows to be over need not be remembered.
		if n := len(d.workers()[0].delivery.resolved); n > 0 {
			t.Errorf("remembers %d ends", n)
		}
	})
}

// A store that reads and does not write goes on saying that a finding fires whose end
// was sent from memory.
func TestNothingIsReportedAgainThatTheStoreHoldsForFiring(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &mind{again: time.Minute}
		d := postOf(t, Hooks{}, m)
		stop := d.run()
		d.notify(fire("k", 1))
		time.Sleep(90 * time.Second)
		end := resolve("k", 2)
		end.At = end.At.Add(time.Hour)
		d.SendFromMemory(d.events(end))
		time.Sleep(10 * time.Minute)
		if n := m.count("k again"); m.count("k resolved") != 1 || n < 1 || n > 2 {
			t.Errorf("received %v", m.received())
		}
		// It fires again, and the store works.
		next := fire("k", 3)
		next.At = end.At.Add(time.Hour)
		d.notify(next)
		time.Sleep(10 * time.Minute)
		stop()
		if n := m.count("k again"); n < 10 {
			t.Errorf("sent again %d times: %v", n, m.received())
		}
	})
}

func TestManyAreReportedAgainInParts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &mind{again: time.Minute}
		d := postOf(t, Hooks{}, m)
		for n := range uint64(350) {
			c := eventOfTransition(fire(fmt.Sprint("k", n), n))
			d.box.know(pendingEvent{PendingEvent: locksteward.PendingEvent{FindingEvent: c}, Recipient: locksteward.Recipient{Receiver: "a", Group: "g"}})
		}
		firstSweep := eventOfTransition(fire("firstSweep", 999))
		firstSweep.FirstSweep = true
		d.box.know(pendingEvent{PendingEvent: locksteward.PendingEvent{FindingEvent: firstSweep}, Recipient: locksteward.Recipient{Receiver: "a", Group: "g"}})
		stop := d.run()
		time.Sleep(time.Second)
		stop()
		if n := len(m.received()); n != 350 || m.most > resendBatchSize || m.count("firstSweep again") != 0 {
			t.Errorf("%d sent again, at most %d at once", n, m.most)
		}
	})
}

// A receiver that is away is one line in the log, and sent again sooner.
func TestAReminderThatFailsIsRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.InfoLevel)
		m := &mind{again: time.Minute}
		d := postOf(t, Hooks{}, m)
		for _, w := range d.workers() {
			w.log = zap.New(core)
		}
		d.box.know(pendingEvent{PendingEvent: locksteward.PendingEvent{FindingEvent: eventOfTransition(fire("k", 1))}, Recipient: locksteward.Recipient{Receiver: "a", Group: "g"}})
		m.goes(errors.New("away"))
		stop := d.run()
		time.Sleep(10 * time.Minute)
		m.goes(nil)
		time.Sleep(20 * time.Second)
		if m.count("k again") != 1 {
			t.Errorf("received %v", m.received())
		}
		d.box.fail(errors.New("no store"))
		time.Sleep(10 * time.Minute)
		d.box.fail(nil)
		time.Sleep(20 * time.Second)
		stop()
		if m.count("k again") < 2 {
			t.Errorf("received %v", m.received())
		}
		if n := logs.FilterMessageSnippet("resending firing alerts failed for some instances").Len(); n != 2 {
			t.Errorf("%d lines about it: %v", n, logs.All())
		}
		if n := logs.FilterMessage("firing alerts are resent again").Len(); n != 2 {
			t.Errorf("%d lines about its end", n)
		}
	})
}

// An alert outlives its time, and a restart of Alertmanager, while it fires, and no
// moment more.
func TestAlertmanagerIsReported(t *testing.T) {
	t.Parallel()
	srv := testam.Start(t, testam.Options{})
	d := postOf(t, Hooks{})
	how := Receiver{Endpoint: atURL(srv.URL()), Resend: time.Second, ResolveAfter: 3 * time.Second}
	out := openAM(t, how)
	a := newWriter(Config{Grouping: Grouping{By: []string{"fingerprint"}}}, Receiver{Name: "am"}.withDefaults(), alertmanagerKind.traits, Hooks{})
	d.apply(DefaultDrainTimeout, writers{[]writer{a}, FirstSweepFire}, []*destination{newDestination(out, a)})
	stop := d.run()
	defer stop()
	fired := lately(fire("lock:order:1", 1), 0)
	d.notify(fired)
	const long = 20 * time.Second
	testredis.Eventually(t, long, func() bool { return len(srv.Alerts()) == 1 }, "the alert does not come")
	first := srv.Alerts()[0].EndsAt
	testredis.Eventually(t, long, func() bool { l := srv.Alerts(); return len(l) == 1 && l[0].EndsAt.After(first.Add(how.ResolveAfter)) }, "the alert is not sent again")
	srv.Restart()
	testredis.Eventually(t, long, func() bool { return len(srv.Alerts()) == 1 }, "the alert does not come back")
	if got := srv.Alerts()[0]; !got.StartsAt.Equal(stamp(fired.At)) {
		t.Errorf("it began at %s, want %s", got.StartsAt, fired.At)
	}
	d.notify(ending(fired))
	testredis.Eventually(t, long, func() bool { return len(srv.Alerts()) == 0 }, "the alert does not end")
	// One more look must not bring it back.
	other := lately(fire("lock:order:2", 3), 0)
	d.notify(other)
	testredis.Eventually(t, long, func() bool { return len(srv.Alerts("key", "lock:order:2")) == 1 }, "the other alert does not come")
	first = srv.Alerts("key", "lock:order:2")[0].EndsAt
	testredis.Eventually(t, long, func() bool {
		l := srv.Alerts("key", "lock:order:2")
		return len(l) == 1 && l[0].EndsAt.After(first.Add(time.Second))
	}, "the other alert is not sent again")
	if got := srv.Alerts("key", "lock:order:1"); len(got) != 0 {
		t.Errorf("it is back: %+v", got)
	}
}
