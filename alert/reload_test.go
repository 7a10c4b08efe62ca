package alert

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
)

// A receiver that a reload takes away: what waits for it is given up with that
// reason, what is under way ends, and the others go on.
func TestReceiverThatIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c counts
		var backlog atomic.Pointer[[]locksteward.Backlog]
		hooks := c.hooks()
		hooks.Backlogs = func(b []locksteward.Backlog) { backlog.Store(&b) }
		a, b := &fake{}, &hanging{}
		d := postOf(t, hooks, a, b)
		stop := d.run()
		d.notify(fire("k", 1), fire("l", 2))
		synctest.Wait()
		d.turn(Endpoint{}, a)
		time.Sleep(time.Minute)
		if got := d.box.states("b"); got["dead"] != 2 || c.get("b dropped removed") != 2 {
			t.Errorf("kept %v, counted %v", got, c.all())
		}
		d.notify(fire("m", 3))
		time.Sleep(time.Minute)
		if got := d.box.states("a"); got["delivered"] != 3 || len(*backlog.Load()) != 1 {
			t.Errorf("kept %v, backlog %v", got, *backlog.Load())
		}
		if n := len(d.box.states("b")); n != 1 {
			t.Errorf("messages for a receiver that is gone: %v", d.box.states("b"))
		}
		// It comes back: what begins from now on is for it, too, and the end of what it
		// was not notified of is not.
		back := &fake{}
		d.turn(Endpoint{}, a, back)
		d.notify(resolve("m", 4), fire("n", 5))
		synctest.Wait()
		stop()
		if got := strings.Join(back.events(), ", "); got != "n firing" {
			t.Errorf("got %s", got)
		}
	})
}

// Messages for a receiver that went while the agent was not running.
func TestReceiverThatWasGoneAtTheStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c counts
		d := postOf(t, c.hooks(), &fake{})
		d.box.put(locksteward.Notification{ID: "msg_1", Receiver: "old"})
		stop := d.run()
		synctest.Wait()
		stop()
		if got := d.box.states("old"); got["dead"] != 1 || c.get("old dropped removed") != 1 || !errors.Is(d.box.why(0), errRemoved) {
			t.Errorf("kept %v, counted %v, %v", got, c.all(), d.box.why(0))
		}
	})
}

// What waits for a receiver goes where the reload says that it is now, at once.
func TestReloadRedirectsWhatWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		was := &fake{answer: func(int, Payload) error { return failing(Reason4xx) }}
		d := postOf(t, Hooks{}, was)
		stop := d.run()
		for n := range uint64(9) {
			d.notify(fire(fmt.Sprint("k", n), n))
		}
		time.Sleep(20 * time.Minute)
		if d.box.states("a")["waiting"] != 9 {
			t.Errorf("kept %v", d.box.states("a"))
		}
		is := &fake{}
		d.turn(Endpoint{}, is)
		synctest.Wait()
		stop()
		if len(is.seen()) != 9 || d.box.states("a")["delivered"] != 9 {
			t.Errorf("got %v, kept %v", is.events(), d.box.states("a"))
		}
	})
}

// Prepare reports what New reports and changes nothing.
func TestPrepareChangesNothingBeforeApply(t *testing.T) {
	t.Parallel()
	url := file(t, "https://example.org/one")
	s, err := New(zap.NewNop(), decode(t, `receivers: [{name: ops, kind: webhook, url_file: `+url+`}]`), &box{}, Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prepare(decode(t, `receivers: [{name: ops, kind: webhook, url_file: /nowhere}, {name: new, kind: webhook, url_file: /nowhere}]`)); err == nil ||
		!strings.Contains(err.Error(), "receivers[1].url_file") {
		t.Errorf("got %v", err)
	}
	prepared, err := s.Prepare(decode(t, `receivers: [{name: ops, lang: zh, kind: webhook, url_file: `+url+`}, {name: new, kind: webhook, url: "https://example.org"}]`))
	if err != nil {
		t.Fatal(err)
	}
	reported := func() (receivers, text string) {
		for _, c := range s.Events([]locksteward.Transition{fire("k", 1)}, nil, nil) {
			for n, to := range c.To {
				receivers += to.Receiver + " "
				m, err := s.writers.Load().list[n].single(c, to.Group)
				if err != nil {
					t.Fatal(err)
				}
				text += string(m.Body)
			}
		}
		return receivers, text
	}
	if got, text := reported(); got != "ops " || strings.Contains(text, "永不过期") {
		t.Errorf("before: %s %s", got, text)
	}
	prepared.Commit()
	if got, text := reported(); got != "ops new " || !strings.Contains(text, "永不过期") || !strings.Contains(text, "never expires") {
		t.Errorf("after: %s %s", got, text)
	}
	if err := os.Remove(url); err != nil {
		t.Fatal(err)
	}
}

// While the outbox does not work people are sent from memory, what fires first; what did
// not arrive so goes to the outbox when it works again, and nothing is sent twice.
func TestReportedFromMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c counts
		var well atomic.Bool
		well.Store(true)
		f := &fake{answer: func(int, Payload) error {
			if well.Load() {
				return nil
			}
			return failing(ReasonRefused)
		}}
		d := postOf(t, c.hooks(), f)
		stop := d.run()
		d.notify(fire("k", 1))
		synctest.Wait()
		d.box.fail(errors.New("the disk is full"))
		unsaved := d.events(resolve("k", 2), fire("l", 3))
		d.SendFromMemory(unsaved)
		time.Sleep(20 * time.Second)
		if got := strings.Join(f.events(), ", "); got != "k firing, l firing, k resolved" {
			t.Errorf("got %s", got)
		}
		well.Store(false)
		more := d.events(resolve("l", 4), fire("m", 5))
		d.SendFromMemory(more)
		time.Sleep(20 * time.Second)
		unsaved = append(unsaved, more...)
		d.box.fail(nil)
		well.Store(true)
		rest, tried := d.Unsaved(unsaved)
		if len(rest) != 4 || len(tried) != 2 || tried[0].EventID != "l/4" || tried[1].EventID != "m/5" || !rest[0].To[0].Direct {
			t.Errorf("left over %d, tried %d", len(rest), len(tried))
		}
		d.box.put(tried...)
		d.box.change(rest...)
		d.Saved(unsaved, tried)
		d.Wake()
		time.Sleep(5 * time.Minute)
		stop()
		// What failed was tried as often as it liked.
		var arrived []string
		for i, a := range f.seen() {
			if i < 3 || i >= len(f.seen())-2 {
				arrived = append(arrived, a.p.Findings[0].EventID)
			}
		}
		slices.Sort(arrived[3:]) // of different findings
		if got := strings.Join(arrived, " "); got != "k/1 l/3 k/2 l/4 m/5" || d.box.states("a")["delivered"] != 3 {
			t.Errorf("arrived %s, kept %v", got, d.box.states("a"))
		}
		if len(d.workers()[0].memory.list) != 0 {
			t.Errorf("%d are kept in memory", len(d.workers()[0].memory.list))
		}
	})
}

// What was sent from memory while it was being written is not sent again.
func TestReportedWhileItIsWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(int, Payload) error {
			time.Sleep(30 * time.Second)
			return nil
		}}
		d := postOf(t, Hooks{}, f)
		stop := d.run()
		synctest.Wait()
		d.box.fail(errors.New("locked"))
		unsaved := d.events(fire("k", 1))
		d.SendFromMemory(unsaved)
		time.Sleep(10 * time.Second)
		rest, tried := d.Unsaved(unsaved)
		if len(tried) != 1 {
			t.Fatalf("tried %+v", tried)
		}
		time.Sleep(time.Minute) // the transaction takes its time
		d.box.fail(nil)
		d.box.put(tried...)
		d.box.change(rest...)
		d.Saved(unsaved, tried)
		d.Wake()
		time.Sleep(time.Minute)
		stop()
		if got := d.box.states("a"); len(f.seen()) != 1 || got["delivered"] != 1 || len(d.workers()[0].memory.list) != 0 {
			t.Errorf("received %d times, kept %v", len(f.seen()), got)
		}
	})
}

// What waits in the outbox comes first: nothing is sent from memory past it.
func TestNothingIsReportedPastWhatWaits(t *testing.T) {
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
		d.notify(fire("k", 1))
		synctest.Wait()
		d.box.fail(errors.New("the disk is full"))
		unsaved := d.events(resolve("k", 2))
		d.SendFromMemory(unsaved)
		time.Sleep(time.Minute)
		if len(f.seen()) != 1 {
			t.Errorf("reported past what waits: %v", f.events())
		}
		d.box.fail(nil)
		rest, tried := d.Unsaved(unsaved)
		if len(tried) != 0 || rest[0].To[0].Direct {
			t.Errorf("left over %d, tried %d", len(rest), len(tried))
		}
		d.box.change(rest...)
		d.Saved(unsaved, tried)
		d.Wake()
		time.Sleep(time.Minute)
		stop()
		if got := strings.Join(f.events(), ", "); got != "k firing, k firing, k resolved" {
			t.Errorf("got %s", got)
		}
	})
}

func TestTestOfAReceiver(t *testing.T) {
	t.Parallel()
	f := &fake{}
	d := postOf(t, Hooks{}, f)
	if err := d.Test(t.Context(), "a", "ana"); err != nil {
		t.Fatal(err)
	}
	if p := f.seen()[0].p; p.Type != "test" || !strings.Contains(p.Text, "ana") || p.ID != f.seen()[0].id {
		t.Errorf("got %+v", p)
	}
	f.answer = func(int, Payload) error { return failing(Reason4xx) }
	if e, ok := errors.AsType[*DeliveryError](d.Test(t.Context(), "a", "ana")); !ok || e.Reason != Reason4xx {
		t.Errorf("got %v", e)
	}
	if err := d.Test(t.Context(), "nobody", "ana"); !errors.Is(err, locksteward.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}
