package alert

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/locksteward/locksteward"
)

// What another process had claimed and said nothing about is sent again, as the
// same message.
func TestClaimOfAKilledSender(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		d := postOf(t, Hooks{}, f)
		d.box.put(d.alone(fire("k", 1), resolve("k", 2))...)
		lost, err := d.box.Claim(t.Context(), "a", 15*time.Second, 1)
		if err != nil || len(lost) != 1 {
			t.Fatal(lost, err)
		}
		stop := d.run()
		time.Sleep(14 * time.Second)
		if len(f.seen()) != 0 {
			t.Errorf("sent %v before the claim was over", f.events())
		}
		time.Sleep(20 * time.Second)
		stop()
		if got := f.seen(); len(got) != 2 || got[0].id != lost[0].ID || got[1].p.Status != "resolved" {
			t.Errorf("sent %v", f.events())
		}
	})
}

// Word about what arrived is repeated until the outbox takes it: it is not sent
// twice for that.
func TestWordIsRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := postOf(t, Hooks{})
		f := &fake{answer: func(int, Payload) error {
			d.box.fail(errors.New("the database is away"))
			return nil
		}}
		d.turn(Endpoint{}, f)
		stop := d.run()
		d.notify(fire("k", 1))
		time.Sleep(8 * time.Second)
		d.box.fail(nil)
		time.Sleep(time.Minute)
		stop()
		if got := d.box.states("a"); len(f.seen()) != 1 || got["delivered"] != 1 {
			t.Errorf("%d attempts, kept %v", len(f.seen()), got)
		}
	})
}

// A claim that ends while the outbox does not take word of what arrived does not
// have it sent twice, neither does a claim of the same message meanwhile.
func TestWordOutlivesTheClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := postOf(t, Hooks{})
		taken := make(chan struct{})
		d.box.slow = taken
		f := &fake{}
		d.turn(Endpoint{}, f)
		stop := d.run()
		d.notify(fire("k", 1))
		time.Sleep(time.Minute)
		if n := d.box.attempts(0); n < 2 {
			t.Fatalf("claimed %d times: the claim did not end", n)
		}
		close(taken)
		time.Sleep(time.Minute)
		stop()
		if got := d.box.states("a"); len(f.seen()) != 1 || got["delivered"] != 1 {
			t.Errorf("%d attempts, kept %v", len(f.seen()), got)
		}
	})
}

// What is to be sent again at once is, though the flight before is not over yet.
func TestAgainBeforeTheFlightIsOver(t *testing.T) {
	t.Parallel()
	f := newInFlightSet()
	box := &box{}
	box.put(locksteward.Notification{ID: "m", Receiver: "a"})
	claim := func() ([]locksteward.Notification, int) {
		t.Helper()
		fresh, came, err := f.claim(t.Context(), box, "a", time.Minute, 1)
		if err != nil {
			t.Fatal(err)
		}
		return fresh, came
	}
	if fresh, _ := claim(); len(fresh) != 1 {
		t.Fatal("nothing to send")
	}
	m, n := f.latest("m")
	if err := box.Retry(t.Context(), m, nil, 0); err != nil {
		t.Fatal(err)
	}
	f.acked("m", n)
	if fresh, came := claim(); len(fresh) != 0 || came != 1 {
		t.Errorf("%d came, %d of them to send beside the flight", came, len(fresh))
	}
	again, yes := f.done("m")
	if !yes || again.Attempts != 2 {
		t.Errorf("not sent again: attempt %d, %t", again.Attempts, yes)
	}
	_, n = f.latest("m")
	f.acked("m", n)
	if _, yes := f.done("m"); yes || len(f.byID) != 0 {
		t.Errorf("the flight does not end: %v", f.byID)
	}
}
