package transport

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The list of requests is what a slice would be.
func TestPendingRequestsAreAList(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		base := time.Now()
		var q pendingRequests
		var all, under []*pendingRequest // those not over, and those of them that were taken
		over := map[*pendingRequest]error{}
		finish := func(r *pendingRequest, err error) {
			over[r] = err
			all = slices.DeleteFunc(all, func(o *pendingRequest) bool { return o == r })
			under = slices.DeleteFunc(under, func(o *pendingRequest) bool { return o == r })
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				deadline := base.Add(time.Duration(rapid.IntRange(1, 100).Draw(t, "deadline")))
				r := newPending(nil, deadline, rapid.Bool().Draw(t, "urgent"))
				q.add(r)
				at := len(all)
				for r.urgent && at > len(under) && !all[at-1].urgent {
					at-- // before those that are not urgent and not sent
				}
				all = slices.Insert(all, at, r)
			},
			"take": func(t *rapid.T) {
				n := rapid.IntRange(1, 5).Draw(t, "n")
				waiting := all[len(under):]
				want := waiting[:min(n, len(waiting))]
				if got := q.take(nil, n); !slices.Equal(got, want) {
					t.Fatalf("took %d of %d, want the first %d", len(got), len(waiting), len(want))
				}
				under = slices.Clone(all[:len(under)+len(want)])
			},
			"end": func(t *rapid.T) {
				if len(all) == 0 {
					t.Skip("none")
				}
				r := rapid.SampledFrom(all).Draw(t, "request")
				err := errors.New("given up")
				q.end(r, false, err)
				q.end(r, true, nil) // it is over already
				finish(r, err)
				// Those taken are the first of all as long as they are not over.
			},
			"expire": func(t *rapid.T) {
				now := base.Add(time.Duration(rapid.IntRange(1, 100).Draw(t, "now")))
				next := q.expire(now)
				var want time.Time
				for _, r := range slices.Clone(all) {
					if !r.deadline.After(now) {
						finish(r, context.DeadlineExceeded)
					} else if want.IsZero() || r.deadline.Before(want) {
						want = r.deadline
					}
				}
				if !next.Equal(want) {
					t.Fatalf("next deadline %v, want %v", next, want)
				}
			},
			"": func(t *rapid.T) {
				if q.unsentCount != len(all)-len(under) {
					t.Fatalf("%d wait, want %d", q.unsentCount, len(all)-len(under))
				}
				var forth, back []*pendingRequest
				for r := q.first; r != nil; r = r.next {
					forth = append(forth, r)
				}
				for r := q.last; r != nil; r = r.prev {
					back = append(back, r)
				}
				slices.Reverse(back)
				if !slices.Equal(forth, all) || !slices.Equal(back, all) {
					t.Fatalf("%d forth, %d back, want %d", len(forth), len(back), len(all))
				}
				for r, want := range over {
					if len(r.done) > 0 {
						if err := <-r.done; !errors.Is(err, want) || r.answered {
							t.Fatalf("outcome %v, back %v, want %v", err, r.answered, want)
						}
					}
				}
			},
		})
	})
}
