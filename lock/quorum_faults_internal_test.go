package lock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/locksteward/locksteward/internal/faults"
)

// Fault 20: with two of three nodes that hang, an acquire fails in time and what the
// third granted is given back at that moment. The time is the caller's, exactly;
// without one no attempt begins later than a pause after Options.Timeout, and each
// costs the votes and the taking back of them, NodeTimeout at most either.
func TestRedlockPartitionFailsInTime(t *testing.T) {
	t.Parallel()
	faults.Covers(t, 20)
	const rest = 300 * time.Millisecond // the longest pause between two attempts
	for name, tc := range map[string]struct {
		o              RedlockOptions
		caller         time.Duration // 0: no deadline
		earliest, most time.Duration
	}{
		"the caller's time": {
			RedlockOptions{NodeTimeout: 50 * time.Millisecond},
			420 * time.Millisecond,
			420 * time.Millisecond, 420 * time.Millisecond,
		},
		"the caller's time, in the first round": {
			RedlockOptions{NodeTimeout: time.Second},
			420 * time.Millisecond,
			420 * time.Millisecond, 420 * time.Millisecond,
		},
		"one attempt takes it all": {
			RedlockOptions{Options: Options{Timeout: 700 * time.Millisecond}, NodeTimeout: time.Second},
			0,
			700 * time.Millisecond, 1700 * time.Millisecond,
		},
		"attempt after attempt": {
			RedlockOptions{Options: Options{Timeout: 700 * time.Millisecond}, NodeTimeout: 50 * time.Millisecond},
			0,
			700 * time.Millisecond, 700*time.Millisecond + rest + 2*50*time.Millisecond,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				k := newCouncil(t, 3, tc.o)
				for _, f := range k.nodes[1:] {
					f.hangs = map[string]bool{"acquire": true, "release": true}
				}
				for range 20 { // pauses are random
					ctx, cancel := context.Background(), func() {}
					if tc.caller > 0 {
						ctx, cancel = context.WithTimeout(ctx, tc.caller)
					}
					began := time.Now()
					_, err := k.TryAcquire(ctx, "k", lease10())
					took := time.Since(began)
					cancel()
					if took < tc.earliest || took > tc.most {
						t.Errorf("failed after %s, want %s to %s", took, tc.earliest, tc.most)
					}
					failed, ok := errors.AsType[*QuorumError](err)
					switch {
					case tc.caller > 0 && errors.Is(err, context.DeadlineExceeded):
					case tc.caller > 0, !ok, failed.Need != 2, failed.Got != 1:
						t.Errorf("got %v", err)
					}
					synctest.Wait() // what is on its way needs no time
					if v := k.nodes[0].holder(); v != "" {
						t.Error("the node that answers still holds it")
					}
				}
				for _, f := range k.nodes[1:] {
					f.set(func(f *fakeNode) { f.hangs = nil })
				}
				pause(context.Background(), 3*time.Second)
				k.free(t, "after the network was healed")
				h, err := k.TryAcquire(context.Background(), "k", lease10())
				if err != nil {
					t.Fatal(err)
				}
				if err := h.Release(context.Background()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
