package store_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
)

// Findings are stored as ids and arguments, and read again as they were.
func TestMessagesAreStoredWithTheirArguments(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		f := locksteward.Finding{
			Rule: "ttl/none", Severity: locksteward.SeverityCritical, Status: locksteward.StatusFiring, Target: "orders", Class: "orders", Key: "lock:1",
			Summary: locksteward.NewMessage("ttl/none.summary", locksteward.LockName("lock:1\xff")),
			Evidence: []locksteward.Message{
				locksteward.NewMessage("lock.seen", 2*time.Second, time.UnixMilli(3), locksteward.NewMessage("count.looks", 4)), {ID: "ttl/none.pttl"},
			},
			CounterEvidence: []locksteward.Message{locksteward.Literal(`no "TTL"`, "没有")},
		}
		if err := s.SaveFindings(t.Context(), "orders", slices.Values([]locksteward.Finding{f})); err != nil {
			t.Fatal(err)
		}
		const want = `{"rule":"ttl/none","severity":"critical","status":"firing","class":"orders",` +
			`"summary":{"id":"ttl/none.summary","args":[{"kind":"lock","text":"lock:1\\xff"}]},` +
			`"evidence":[{"id":"lock.seen","args":[{"kind":"duration","number":2000000000},{"kind":"time","number":3},` +
			`{"kind":"message","message":{"id":"count.looks","args":[{"kind":"count","number":4}]}}]},{"id":"ttl/none.pttl"}],` +
			`"counter_evidence":[{"id":"literal","args":[{"kind":"text","text":"no \"TTL\""},{"kind":"text","text":"没有"}]}],"cause":{},"remedy":{}}`
		var stored string
		if err := s.SQL().QueryRowContext(t.Context(), `SELECT finding FROM findings`).Scan(&stored); err != nil || stored != want {
			t.Fatalf("stored %s, %v\nwant   %s", stored, err, want)
		}
		got, err := s.LoadFindings(t.Context(), "orders")
		if err != nil || !reflect.DeepEqual(got, []locksteward.Finding{f}) {
			t.Fatalf("got  %+v, %v\nwant %+v", got, err, f)
		}
	})
}
