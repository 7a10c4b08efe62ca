package store_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/locksteward/locksteward"
)

// Lines of evidence that were stored before they were in two languages are read, and
// written again as they were.
func TestLinesOfOlderVersionsAreRead(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		f := locksteward.Finding{
			Rule: "ttl/none", Severity: locksteward.SeverityCritical, Status: locksteward.StatusFiring, Target: "orders", Class: "orders", Key: "lock:1",
			Evidence: []locksteward.Text{{EN: `no "TTL"`}, {EN: "two", ZH: "二"}, {}}, CounterEvidence: []locksteward.Text{{EN: "three"}},
		}
		if err := s.SaveFindings(t.Context(), "orders", slices.Values([]locksteward.Finding{f})); err != nil {
			t.Fatal(err)
		}
		const row = `{"rule":"ttl/none","severity":"critical","status":"firing","class":"orders","summary":{},` +
			`"evidence":["no \"TTL\"",%s,""],"counter_evidence":["three"],"cause":{},"remedy":{}}`
		var stored string
		if err := s.SQL().QueryRowContext(t.Context(), `SELECT finding FROM findings`).Scan(&stored); err != nil || stored != fmt.Sprintf(row, `{"en":"two","zh":"二"}`) {
			t.Fatalf("stored %s, %v", stored, err)
		}
		f.Evidence[1].ZH = ""
		rewrite := func(line string) {
			t.Helper()
			if err := s.Exec(t.Context(), `UPDATE findings SET finding = ?`, fmt.Sprintf(row, line)); err != nil {
				t.Fatal(err)
			}
		}
		rewrite(`"two"`)
		got, err := s.LoadFindings(t.Context(), "orders")
		if err != nil || !reflect.DeepEqual(got, []locksteward.Finding{f}) {
			t.Fatalf("got  %+v, %v\nwant %+v", got, err, f)
		}
		rewrite(`7`)
		if got, err := s.LoadFindings(t.Context(), "orders"); err == nil {
			t.Fatalf("a number is read as a line: %+v", got)
		}
	})
}
