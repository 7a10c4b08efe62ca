package redlock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/internal/retry"
)

// Fault 20: with two of three nodes that hang, an acquire fails in time and what the
// third granted is given back at that moment. The time is the caller's, exactly;
// without one it is Options.Timeout, and no attempt begins that has not the time for
// both its rounds, or a quarter of it all.
// fault: 20
func TestRedlockPartitionFailsInTime(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		o              Options
		caller         time.Duration // 0: no deadline
		earliest, most time.Duration
	}{
		"the caller's time": {
			Options{NodeTimeout: 50 * time.Millisecond},
			420 * time.Millisecond,
			420 * time.Millisecond, 420 * time.Millisecond,
		},
		"the caller's time, in the first round": {
			Options{NodeTimeout: time.Second},
			420 * time.Millisecond,
			420 * time.Millisecond, 420 * time.Millisecond,
		},
		"one attempt takes it all": {
			Options{Options: lock.Options{Timeout: 700 * time.Millisecond}, NodeTimeout: time.Second},
			0,
			700 * time.Millisecond, 700 * time.Millisecond,
		},
		"attempt after attempt": {
			Options{Options: lock.Options{Timeout: 700 * time.Millisecond}, NodeTimeout: 50 * time.Millisecond},
			0,
			700*time.Millisecond - 2*50*time.Millisecond, 700 * time.Millisecond,
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
				retry.Pause(context.Background(), 3*time.Second)
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

// Nodes that are not there are asked again, however long one that is may take, and
// the last attempt begins in time.
// fault: 20
func TestRedlockRefusedIsTriedUntilTheTimeout(t *testing.T) {
	t.Parallel()
	for _, nodeTimeout := range []time.Duration{50 * time.Millisecond, time.Second} {
		t.Run(nodeTimeout.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const timeout = 700 * time.Millisecond
				k := newCouncil(t, 3, Options{Options: lock.Options{Timeout: timeout}, NodeTimeout: nodeTimeout})
				for _, f := range k.nodes[1:] {
					f.fails = map[string]error{"acquire": dialError()}
				}
				began := time.Now()
				_, err := k.TryAcquire(context.Background(), "k", lease10())
				if took := time.Since(began); took < timeout*3/4 || took > timeout {
					t.Errorf("failed after %s, want %s to %s", took, timeout*3/4, timeout)
				}
				if failed, ok := errors.AsType[*QuorumError](err); !ok || failed.Got != 1 {
					t.Errorf("got %v", err)
				}
				if n := k.nodes[0].count("acquire"); n < 4 {
					t.Errorf("tried %d times", n)
				}
				k.free(t, "after an acquire that failed")
			})
		})
	}
}

// Votes that are still being taken back when the time of an acquire is over, since
// nodes do not answer, hold up Close for as long as a node may take, and nothing goes
// on after it. (The bubble fails on a goroutine that never ends.)
// fault: 20
func TestRedlockCloseWaitsForVotesTakenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// The second attempt begins after 245 to 250 ms, and has its votes, or none,
		// 120 ms later.
		const timeout, node = 400 * time.Millisecond, 120 * time.Millisecond
		k := newCouncil(t, 3, Options{Options: lock.Options{Timeout: timeout}, NodeTimeout: node})
		for _, f := range k.nodes[1:] {
			f.hangs = map[string]bool{"acquire": true, "release": true}
		}
		began := time.Now()
		if _, err := k.TryAcquire(context.Background(), "k", lease10()); err == nil {
			t.Fatal("taken by one node of three")
		}
		if took := time.Since(began); took != timeout {
			t.Errorf("failed after %s, want %s", took, timeout)
		}
		k.nodes[0].set(func(f *fakeNode) {
			if f.live() != "" {
				t.Error("the node that answers still holds it")
			}
		})
		began = time.Now()
		if err := k.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took < 80*time.Millisecond || took > node {
			t.Errorf("Close took %s, want 80ms to %s: requests were under way", took, node)
		}
		asked := k.nodes[1].count("release")
		retry.Pause(context.Background(), time.Minute)
		if n := k.nodes[1].count("release"); n != asked {
			t.Errorf("%d requests after Close", n-asked)
		}
	})
}
