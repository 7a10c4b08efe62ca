package fenced_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/fenced"
)

// attempt is one write and how it ended. Its value is its fence.
type attempt struct {
	fence int64
	err   error
}

// Whatever writers do at once, a fenced resource ends with the greatest fence
// and never goes back; without fence it does.
func TestConcurrentWriters(t *testing.T) {
	t.Parallel()
	rdb := testredis.Start(t).Client(t)
	db := openDB(t, testpg.Database(t))
	makeTables(t, db)
	for _, r := range resources(rdb, db) {
		t.Run(r.name, func(t *testing.T) {
			var base int64
			wentBack := 0
			rapid.Check(t, func(rt *rapid.T) {
				writers := rapid.SliceOfN(rapid.SliceOfN(rapid.Int64Range(1, 30), 1, 6), 2, 5).Draw(rt, "fences")
				// Each run goes on above the last one.
				for _, fences := range writers {
					for i := range fences {
						fences[i] += base
					}
				}
				base += 30
				attempts, seen := race(t.Context(), rt, r, writers)
				if !r.fenced {
					last, greatest := seen[len(seen)-1], int64(0)
					for _, a := range attempts {
						greatest = max(greatest, a.fence)
					}
					if last != greatest || !slices.IsSorted(seen) {
						wentBack++
					}
					return
				}
				judge(rt, attempts, seen)
			})
			if !r.fenced && wentBack == 0 {
				t.Error("the control without fence never went back: the test proves nothing")
			}
		})
	}
}

// race lets the writers write all at once, and returns what they got, and the
// values that somebody who looks all the while has seen, the last one after the
// end.
func race(ctx context.Context, rt *rapid.T, r resource, writers [][]int64) (attempts []attempt, seen []int64) {
	var wg sync.WaitGroup
	results := make([][]attempt, len(writers))
	start := make(chan struct{})
	for i, fences := range writers {
		wg.Go(func() {
			<-start
			for _, f := range fences {
				results[i] = append(results[i], attempt{f, r.write(ctx, f, strconv.FormatInt(f, 10))})
			}
		})
	}
	var over atomic.Bool
	var looker sync.WaitGroup
	var lookErr error
	looker.Go(func() {
		for last := false; !last; {
			last = over.Load()
			text, err := r.read(ctx)
			if errors.Is(err, redis.Nil) || text == "open" {
				continue // nobody has written yet
			}
			value, parseErr := strconv.ParseInt(text, 10, 64)
			if err = errors.Join(err, parseErr); err != nil {
				lookErr = err
				return
			}
			seen = append(seen, value)
		}
	})
	close(start)
	wg.Wait()
	over.Store(true)
	looker.Wait()
	if lookErr != nil {
		rt.Fatalf("look: %v", lookErr)
	}
	return slices.Concat(results...), seen
}

func judge(rt *rapid.T, attempts []attempt, seen []int64) {
	var greatest int64
	for _, a := range attempts {
		greatest = max(greatest, a.fence)
	}
	for _, a := range attempts {
		stale, isStale := errors.AsType[*fenced.StaleError](a.err)
		switch {
		case a.err == nil:
		case !isStale:
			rt.Errorf("write with %d: %v", a.fence, a.err)
		case stale.Fence != a.fence || stale.Seen <= a.fence || stale.Seen > greatest:
			rt.Errorf("write with %d refused: %v", a.fence, a.err)
		}
		if a.fence == greatest && a.err != nil {
			rt.Errorf("the greatest fence was refused: %v", a.err)
		}
	}
	if !slices.IsSorted(seen) {
		rt.Errorf("the value went back: %v", seen)
	}
	if last := seen[len(seen)-1]; last != greatest {
		rt.Errorf("ended with %d, want %d", last, greatest)
	}
}
