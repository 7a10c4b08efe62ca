package alert

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/locksteward/locksteward"
)

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
		d := dispatcherOf(t, Config{}, c.hooks(), f)
		stop := running(t, d)
		d.Notify(t.Context(), []locksteward.Transition{fire("k", 1)})
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
			wait, limit := a.at.Sub(got[i].at), min(backoffCap, backoffBase<<i)+time.Nanosecond
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

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(n int, _ Payload) error {
			if n == 1 {
				return &DeliveryError{Reason: Reason429, Status: 429, Retryable: true, RetryAfter: 90 * time.Second, Endpoint: "https://h"}
			}
			return nil
		}}
		d := dispatcherOf(t, Config{}, Hooks{}, f)
		stop := running(t, d)
		d.Notify(t.Context(), []locksteward.Transition{fire("k", 1)})
		time.Sleep(10 * time.Minute)
		stop()
		got := f.seen()
		if len(got) != 2 || got[1].at.Sub(got[0].at) < 90*time.Second {
			t.Errorf("attempts %v", got)
		}
	})
}

func TestCapsEndTheAttempts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		webhook Webhook
		check   func(attempts []attempt) bool
	}{
		"attempts": {Webhook{MaxAttempts: 3}, func(a []attempt) bool { return len(a) == 3 }},
		"age": {Webhook{MaxAge: 10 * time.Minute}, func(a []attempt) bool {
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
				d := dispatcherOf(t, Config{}, n.hooks(), f)
				c.webhook.URL = "https://h"
				rc := Config{Receivers: []Receiver{{Name: "a", Webhook: &c.webhook}}}.withDefaults().Receivers[0]
				d.receivers[0].maxAttempts, d.receivers[0].maxAge = rc.Webhook.MaxAttempts, rc.Webhook.MaxAge
				stop := running(t, d)
				d.Notify(t.Context(), []locksteward.Transition{fire("bad", 1)})
				synctest.Wait()
				// A severity change of the same finding and another finding wait behind.
				d.Notify(t.Context(), []locksteward.Transition{resolve("bad", 2), fire("good", 3)})
				time.Sleep(24 * time.Hour)
				stop()
				got := f.seen()
				if !c.check(got[:len(got)-1]) {
					t.Errorf("%d attempts", len(got))
				}
				// The resolve of what never arrived is withheld; the rest goes on.
				if last := f.events()[len(got)-1]; last != "good firing" {
					t.Errorf("last is %q", last)
				}
				if n.get("a dropped refused") != 1 || n.get("a dropped no_fire") != 1 || n.get("a delivered ok") != 1 {
					t.Errorf("counted %v", n.all())
				}
			})
		})
	}
}

// A fire whose attempt may have arrived is followed by its resolve, or the
// receiver would show it for ever.
func TestResolveFollowsAnUncertainFire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(n int, p Payload) error {
			switch {
			case p.Status == "resolved":
				return nil
			case n == 1:
				return failing(ReasonTimeout)
			default:
				return refusing(Reason4xx)
			}
		}}
		d := dispatcherOf(t, Config{}, Hooks{}, f)
		stop := running(t, d)
		d.Notify(t.Context(), []locksteward.Transition{fire("k", 1), resolve("k", 2)})
		time.Sleep(time.Minute)
		stop()
		if got := strings.Join(f.events(), ", "); got != "k firing, k firing, k resolved" {
			t.Errorf("got %s", got)
		}
	})
}

func TestPermanentFailureIsNotRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c counts
		f := &fake{answer: func(int, Payload) error { return refusing(Reason4xx) }}
		d := dispatcherOf(t, Config{}, c.hooks(), f)
		stop := running(t, d)
		d.Notify(t.Context(), []locksteward.Transition{fire("k", 1)})
		time.Sleep(time.Hour)
		stop()
		if len(f.seen()) != 1 || c.get("a dropped http_4xx") != 1 {
			t.Errorf("%d attempts, counted %v", len(f.seen()), c.all())
		}
	})
}

func TestADeadReceiverDelaysNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dead := &hanging{}
		alive := &fake{}
		d := dispatcherOf(t, Config{}, Hooks{}, dead, alive)
		stop := running(t, d)
		start := time.Now()
		for n := range uint64(100) {
			d.Notify(t.Context(), []locksteward.Transition{fire(fmt.Sprint("k", n), n)})
		}
		synctest.Wait()
		if len(alive.events()) != 100 || time.Since(start) != 0 {
			t.Errorf("%d events after %s", len(alive.events()), time.Since(start))
		}
		if depths := d.Depths(); depths[0].Queued != 100 || depths[0].Oldest.IsZero() || depths[1].Queued != 0 {
			t.Errorf("depths %+v", depths)
		}
		stop()
	})
}

// hanging is a receiver that never answers.
type hanging struct{}

func (*hanging) send(ctx context.Context, _ string, _ []byte) error {
	<-ctx.Done()
	return transportError("https://h", ctx.Err())
}
func (*hanging) close() {}

func TestBatchesKeepOrderPerFinding(t *testing.T) {
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
		got := map[string][]string{}
		synctest.Test(t, func(t *testing.T) {
			f := &fake{answer: func(n int, p Payload) error {
				if n <= len(fails) && fails[n-1] {
					return failing(Reason5xx)
				}
				for _, e := range p.Findings {
					got[e.Key.Key] = append(got[e.Key.Key], e.EventID)
				}
				return nil
			}}
			d := dispatcherOf(t, Config{}, Hooks{}, f)
			stop := running(t, d)
			for part := range slices.Chunk(all, chunk) {
				d.Notify(t.Context(), part)
			}
			time.Sleep(5 * time.Hour)
			stop()
		})
		if !maps.EqualFunc(got, want, slices.Equal[[]string]) {
			rt.Fatalf("got %v, want %v", got, want)
		}
	})
}

func TestMessagesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		d := dispatcherOf(t, Config{}, Hooks{}, f)
		var all []locksteward.Transition
		for n := range uint64(3*maxBatch + 1) {
			all = append(all, fire(fmt.Sprint("k", n), n))
		}
		d.Notify(t.Context(), all)
		stop := running(t, d)
		synctest.Wait()
		stop()
		if got := f.seen(); len(got) != 4 || len(got[0].p.Findings) != maxBatch || len(got[3].p.Findings) != 1 {
			t.Errorf("%d messages", len(got))
		}
	})
}

func TestFullQueueCountsAndNeverResolvesWhatItDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c counts
		f := &fake{}
		d := dispatcherOf(t, Config{QueueSize: 3}, c.hooks(), f)
		var all []locksteward.Transition
		for n := range uint64(5) {
			all = append(all, fire(fmt.Sprint("k", n), n))
		}
		for n := range uint64(5) {
			all = append(all, resolve(fmt.Sprint("k", n), 10+n))
		}
		d.Notify(t.Context(), all)
		stop := running(t, d)
		synctest.Wait()
		stop()
		if got := strings.Join(f.events(), ", "); got != "k0 firing, k1 firing, k2 firing, k0 resolved, k1 resolved, k2 resolved" {
			t.Errorf("got %s", got)
		}
		if c.get("a dropped queue_full") != 2 || c.get("a dropped no_fire") != 2 || c.get("a delivered ok") != 2 {
			t.Errorf("counted %v", c.all())
		}
	})
}

func TestShutdownDrains(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(n int, _ Payload) error {
			if n == 1 {
				return failing(ReasonRefused)
			}
			return nil
		}}
		d := dispatcherOf(t, Config{}, Hooks{}, f)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		d.Notify(t.Context(), []locksteward.Transition{fire("k", 1)})
		d.Notify(t.Context(), []locksteward.Transition{resolve("k", 2)})
		if err := d.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(f.events(), ", "); got != "k firing, k firing, k resolved" {
			t.Errorf("got %s", got)
		}
	})
}

func TestShutdownIsBoundedAndCountsWhatIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c counts
		d := dispatcherOf(t, Config{DrainTimeout: 3 * time.Second}, c.hooks(), &hanging{})
		stop := running(t, d)
		d.Notify(t.Context(), []locksteward.Transition{fire("k", 1)})
		synctest.Wait()
		d.Notify(t.Context(), []locksteward.Transition{fire("l", 2), fire("m", 3)})
		start := time.Now()
		stop()
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("took %s, want 3s", took)
		}
		d.Notify(t.Context(), []locksteward.Transition{fire("n", 4)})
		if c.get("a dropped shutdown") != 4 {
			t.Errorf("counted %v", c.all())
		}
	})
}

func TestPendingIsNotTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		d := dispatcherOf(t, Config{}, Hooks{}, f)
		stop := running(t, d)
		d.Notify(t.Context(), []locksteward.Transition{transition("k", 1, locksteward.StatusPending)})
		d.Notify(t.Context(), nil)
		synctest.Wait()
		stop()
		if len(f.seen()) != 0 {
			t.Errorf("sent %v", f.events())
		}
	})
}

func TestRunWithoutReceivers(t *testing.T) {
	t.Parallel()
	d := dispatcherOf(t, Config{}, Hooks{})
	stop := running(t, d)
	d.Notify(t.Context(), []locksteward.Transition{fire("k", 1)})
	stop()
}
