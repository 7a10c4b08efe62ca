package agent_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// past waits until the history of a lock, newest first, has these kinds.
func (b *bed) past(key string, kinds ...string) []api.LockEvent {
	b.t.Helper()
	var got []api.LockEvent
	var names []string
	b.t.Cleanup(func() {
		if b.t.Failed() {
			b.t.Logf("the history of %s was %q", key, names)
		}
	})
	testredis.Eventually(b.t, within, func() bool {
		list, err := b.ana.LockEvents(b.t.Context(), "main", nil, key, 100)
		if err != nil {
			b.t.Fatal(err)
		}
		got, names = list.Events, nil
		for _, e := range got {
			names = append(names, e.Kind)
		}
		return strings.Join(names, " ") == strings.Join(kinds, " ")
	}, fmt.Sprintf("the history of %s is not %q", key, kinds))
	return got
}

const quiet = "targets: [{name: main, url: '%s', schedule: '@every 300ms', pace: {idle: 50%%, busy: 50%%}, release_credentials: {}%s}]\n"

// How each hold of a lock began and ended is known, by the watch and by sweeps
// alone, and after restarts; a release by a request is reported from all others.
func TestHistoryOfALock(t *testing.T) {
	t.Parallel()
	for _, watch := range []string{"auto", "off"} {
		t.Run("watch "+watch, func(t *testing.T) {
			t.Parallel()
			srv := testredis.Start(t)
			rdb := srv.Client(t)
			b := newBed(t, fmt.Sprintf(quiet, srv.URL(), ", watch: "+watch)+orders)
			ctx := t.Context()
			take := func(key string, ttl time.Duration) {
				t.Helper()
				set(t, rdb, key, token, ttl)
				b.past(key, "acquired")
			}

			take("lock:order:expires", 5*time.Second) // it must be seen before it ends
			e := b.past("lock:order:expires", "expired", "acquired")
			if e[0].HeldMs > 5000 || e[0].HeldMs < 100 || !e[0].HeldIsMinimum || e[0].TokenDigest == "" || e[0].At.Before(e[1].At) {
				t.Errorf("%+v", e)
			}

			take("lock:order:ends", time.Minute)
			if err := rdb.PExpire(ctx, "lock:order:ends", 5*time.Minute).Err(); err != nil {
				t.Fatal(err)
			}
			e = b.past("lock:order:ends", "renewed", "acquired")
			if e[0].Renewals != 1 {
				t.Errorf("%+v", e)
			}
			if err := rdb.Del(ctx, "lock:order:ends").Err(); err != nil {
				t.Fatal(err)
			}
			b.past("lock:order:ends", "released", "renewed", "acquired")

			// A request, and then a hold of its own.
			set(t, rdb, "lock:order:forced", token, 0)
			b.past("lock:order:forced", "firing", "acquired")
			r, err := b.ana.CreateRequest(ctx, api.CreateRequest{Target: "main", Key: api.NewKey("lock:order:forced"), Reason: "stuck"})
			if err != nil {
				t.Fatal(err)
			}
			if r, err = b.bo.Approve(ctx, r.ID, api.Decide{Reason: "checked", EvidenceHash: r.EvidenceHash}); err != nil || r.State != string(locksteward.RequestReleased) {
				t.Fatalf("%s, %v", r.State, err)
			}
			testredis.Eventually(t, within, func() bool {
				list, err := b.ana.LockEvents(ctx, "main", nil, "lock:order:forced", 100)
				if err != nil {
					t.Fatal(err)
				}
				e = list.Events
				kinds := map[string]int{}
				for i, x := range e {
					if kinds[x.Kind]++; x.Kind == "force-released" && x.RequestID != r.ID || i > 0 && x.At.After(e[i-1].At) {
						t.Fatalf("%+v", e)
					}
				}
				return kinds["force-released"] == 1 && kinds["resolved"] == 1 && kinds["firing"] == 1 && kinds["acquired"] == 1
			}, "the release is not in the history")
			for _, x := range e {
				if x.Kind == "firing" && (x.Rule != "ttl/none" || x.Severity != "critical" || x.Summary == "") {
					t.Errorf("%+v", x)
				}
			}
			take("lock:order:survives", time.Hour)

			// Nobody looks while this one goes, and that one stays.
			take("lock:order:gone", time.Hour)
			testredis.Eventually(t, within, func() bool { return historyRows(t, b) >= 2 }, "no histories")
			b.stop()
			if err := rdb.Del(ctx, "lock:order:gone").Err(); err != nil {
				t.Fatal(err)
			}
			b.start()
			e = b.past("lock:order:gone", "gone", "acquired")
			if !e[0].HeldIsMinimum {
				t.Errorf("%+v", e)
			}
			b.past("lock:order:survives", "acquired")
			b.past("lock:order:ends", "released", "renewed", "acquired")

			// A lock of no class has a history once there was a finding on it.
			set(t, rdb, "lock:plain", token, time.Minute)
			set(t, rdb, "lock:bad", token, 0)
			b.past("lock:bad", "firing", "acquired")
			if err := rdb.Del(ctx, "lock:plain", "lock:bad").Err(); err != nil {
				t.Fatal(err)
			}
			testredis.Eventually(t, within, func() bool {
				list, err := b.ana.LockEvents(ctx, "main", nil, "lock:bad", 100)
				return err == nil && len(list.Events) == 4
			}, "no end of lock:bad")
			b.past("lock:plain")
			if out := b.everything(); strings.Contains(out, token) {
				t.Error("the token came out")
			}
			b.stop()
		})
	}
}

// historyRows is how many holds the store knows.
func historyRows(t *testing.T, b *bed) int {
	t.Helper()
	list, err := b.ana.AuditStatus(t.Context())
	if err != nil || list.Entries == 0 {
		t.Fatalf("%+v, %v", list, err)
	}
	return bytes.Count([]byte(b.everything()), []byte("lock:order:gone"))
}
