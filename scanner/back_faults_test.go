package scanner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/rules"
)

// A server comes back with a snapshot from before some locks ended, by whomever: they
// are named. A lock whose token others use too may as well be the next hold, and one
// that was never seen to end is as it was.
// fault: 29
func TestSnapshotBringsBackLocksThatEnded(t *testing.T) {
	t.Parallel()
	for _, watching := range []bool{true, false} {
		t.Run(fmt.Sprint("watch ", watching), func(t *testing.T) {
			t.Parallel()
			srv := testredis.Start(t)
			c := srv.Client(t)
			ctx := t.Context()
			e, err := rules.New(nil, nil, nil)
			must(t, err)
			w := &reported{t: t, s: fast(srv.URL()).build(t), locks: map[string]locksteward.Lock{}}
			if watching {
				w.run(t)
				w.awaitTracking()
			}
			judged(t, w.s, e)
			const token = "0f8fad5b-d9cb-469f-a165-70867728950e"
			for key, value := range map[string]string{
				"lock:released": token, "lock:shared": "1",
				"lock:next": "7c9e6679-7425-40de-944b-e07fc1f90ae7", "lock:stands": "9b2d7f3e-52a1-4c0d-8f61-3f4f6a1f0c55",
			} {
				must(t, c.Set(ctx, key, value, time.Hour).Err())
			}
			take(t, c, "lock:ours", record.Meta{ID: "0123456789abcdef0123456789abcdef", Instance: "i"}, time.Hour)
			must(t, c.Save(ctx).Err())
			if got := judged(t, w.s, e); len(got.Locks) != 5 {
				t.Fatalf("locks %q", names(got.Locks))
			}
			// Released; and taken again with the same token, on the same data.
			must(t, c.Del(ctx, "lock:released").Err())
			judged(t, w.s, e)
			must(t, c.Set(ctx, "lock:released", token, time.Hour).Err())
			judged(t, w.s, e)
			meta := record.Companion(record.DefaultPrefix, record.KindHold, "lock:ours")
			must(t, c.Del(ctx, "lock:released", "lock:shared", "lock:ours", meta).Err())
			must(t, c.Set(ctx, "lock:next", "550e8400-e29b-41d4-a716-446655440000", time.Hour).Err())
			if got := judged(t, w.s, e); len(got.Locks) != 2 {
				t.Fatalf("locks %q", names(got.Locks))
			}
			srv.Kill()
			srv.Restart()
			want := []string{"lock:next", "lock:ours", "lock:released"}
			var back []locksteward.ServerEvent
			testredis.Eventually(t, 20*time.Second, func() bool {
				got, err := w.s.Sweep(ctx)
				e.Evaluate(got)
				back = happened(got, locksteward.ServerRestarted)
				return err == nil && got.Complete() && len(back) == 1 && len(got.Locks) == 5
			}, "the restart is not seen")
			if back[0].Back != len(want) || !slices.Equal(back[0].BackKeys, want) {
				t.Errorf("back with the snapshot: %+v, want %q", back[0], want)
			}
			f := finding(e, "server/restarted", "")
			if f == nil || !strings.Contains(evidenceOf(f), "belong to nobody: "+strings.Join(want, ", ")) {
				t.Errorf("reported: %+v", f)
			}
			// Reported once: they stand there from now on.
			if again := happened(judged(t, w.s, e), locksteward.ServerRestarted); len(again) != 1 || again[0].Back != len(want) {
				t.Errorf("reported again: %+v", again)
			}
		})
	}
}
