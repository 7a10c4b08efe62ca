package remote

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
)

// However many pages ask at once, findings of other replicas are read once a second. If the store does not answer, those
// read last remain.
func TestFindings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		var failure error
		targets := &Targets{opts: Options{
			Log:        zap.NewNop(),
			Configured: func() []string { return []string{"orders", "stock"} },
			RunsHere:   func(name string) bool { return name == "stock" },
			LoadFindings: func(_ context.Context, name string) ([]locksteward.Finding, error) {
				reads.Add(1)
				time.Sleep(100 * time.Millisecond)
				return []locksteward.Finding{{Target: name}}, failure
			},
		}}
		expect := func(when string, wantReads int64) {
			t.Helper()
			var group sync.WaitGroup
			for range 10 {
				group.Go(func() {
					if list := targets.Findings(); len(list) != 1 || list[0].Target != "orders" {
						t.Errorf("%s: %+v", when, list)
					}
				})
			}
			group.Wait()
			if got := reads.Load(); got != wantReads {
				t.Errorf("%s: %d reads, want %d", when, got, wantReads)
			}
		}
		expect("first", 1)
		expect("again", 1)
		time.Sleep(pollInterval)
		expect("a second later", 2)
		time.Sleep(pollInterval)
		failure = errors.New("no answer")
		expect("without the store", 3)
		failure = nil
		expect("with the store", 4)
	})
}
