package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
)

func urgent(urgency int, id, ordering string) locksteward.Notification {
	m := message(id, ordering)
	m.Urgency = urgency
	return m
}

// Of what is due the most urgent is claimed first, then the oldest. What waits before
// an urgent message in its order goes with it, also where both are written at once.
func TestUrgentMessagesAreClaimedFirst(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		enqueue(t, s, urgent(4, "w1", "wait"), urgent(4, "w2", "wait"), urgent(0, "r1", "mixed"), urgent(4, "w3", "late"))
		enqueue(t, s, urgent(5, "asks", "r-1"), urgent(0, "n1", "both"), urgent(6, "n2", "both"), urgent(0, "n3", "both"))
		enqueue(t, s, urgent(6, "c", "mixed"), urgent(0, "alone", ""))
		var got []string
		for range 10 {
			m := claim(t, s, "ops", 1)
			if len(m) != 1 {
				break
			}
			got = append(got, m[0].ID)
			if err := s.Delivered(t.Context(), m[0]); err != nil {
				t.Fatal(err)
			}
		}
		if want := "r1 n1 n2 c asks w1 w2 w3 n3 alone"; strings.Join(got, " ") != want {
			t.Errorf("claimed %v, want %s", got, want)
		}
	})
}

// After an outage all that waits is due at once, the most urgent first.
func TestHurriedMessagesComeByUrgency(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		enqueue(t, s, urgent(4, "w1", "g1"), urgent(4, "w2", "g2"), urgent(6, "c", "g3"))
		for _, m := range claim(t, s, "ops", 9) {
			if err := s.Retry(t.Context(), m, errors.New("refused"), time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		if wait, ok, err := s.NextDue(t.Context(), "ops"); err != nil || !ok || wait < time.Minute {
			t.Fatalf("due in %s, %t, %v", wait, ok, err)
		}
		if err := s.RetryNow(t.Context(), "ops"); err != nil {
			t.Fatal(err)
		}
		if got := ids(claim(t, s, "ops", 9)); !slices.Equal(got, []string{"c", "w1", "w2"}) {
			t.Errorf("claimed %v", got)
		}
	})
}

// Groups that are due come by urgency. Those that are no more urgent than what waits
// before them in the outbox are left until that is sent.
func TestUrgentGroupsAreFlushedFirst(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		to := func(group string, urgency int) locksteward.Recipient {
			return locksteward.Recipient{Receiver: "ops", Group: group, Urgency: urgency}
		}
		writeEvents(t, s, fires("e1", "k1", to("old", 4)), resolves("e2", "k2", to("ended", 0)), fires("e3", "k3", to("worst", 6)), fires("e4", "k4", to("held", 4)))
		writeEvents(t, s, fires("e5", "k5", to("old", 4)))
		next := func(behind string) []string {
			t.Helper()
			var out []string
			_, err := s.Flush(t.Context(), "ops", behind, 10, 100, func(due []locksteward.DueGroup) ([]locksteward.FlushedGroup, []locksteward.Notification) {
				for _, g := range due {
					out = append(out, g.Group)
				}
				return nil, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		if got := next("*"); !slices.Equal(got, []string{"worst", "held", "old", "ended"}) {
			t.Errorf("due %v", got)
		}
		enqueue(t, s, urgent(4, "m", "*"))
		if got := next("*"); !slices.Equal(got, []string{"worst"}) {
			t.Errorf("behind a message due %v", got)
		}
		if _, ok, err := s.NextGroup(t.Context(), "ops", "*"); err != nil || !ok {
			t.Errorf("next %t, %v", ok, err)
		}
		if got := next(""); len(got) != 4 {
			t.Errorf("behind nothing due %v", got)
		}
		// Reported, a group is no longer urgent; what is held back in it keeps that.
		flushed(t, s, "ops", 100, func(g locksteward.DueGroup) (locksteward.FlushedGroup, []locksteward.Notification) {
			f, _ := notifyAll(g)
			f.Next = 0
			if g.Group == "held" {
				f.Notified, f.Sent, f.Held = nil, false, map[int64]string{g.Waiting[0].Seq: "silence:1"}
			}
			return f, nil
		})
		if _, ok, err := s.NextGroup(t.Context(), "ops", "*"); err != nil || ok {
			t.Errorf("next %t, %v: all is sent, or as urgent as what waits", ok, err)
		}
		if got := next(""); got[0] != "held" || len(got) != 4 {
			t.Errorf("then due %v", got)
		}
	})
}

// Why a receiver fails is known however much waits behind the message that failed.
func TestLastFailure(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		want := func(want string) {
			t.Helper()
			if got, err := s.LastFailure(t.Context(), "ops"); err != nil || got != want {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
		}
		want("")
		var all []locksteward.Notification
		for n := range 150 {
			all = append(all, message(fmt.Sprint("m", n), "g"))
		}
		enqueue(t, s, all...)
		want("")
		for _, why := range []string{"refused", "status 500"} {
			first := claim(t, s, "ops", 1)[0]
			if err := s.Retry(t.Context(), first, errors.New(why), 0); err != nil {
				t.Fatal(err)
			}
			want(why)
		}
		if got, err := s.LastFailure(t.Context(), "chat"); err != nil || got != "" {
			t.Errorf("of another receiver %q, %v", got, err)
		}
		if err := s.Delivered(t.Context(), claim(t, s, "ops", 1)[0]); err != nil {
			t.Fatal(err)
		}
		want("")
	})
}
