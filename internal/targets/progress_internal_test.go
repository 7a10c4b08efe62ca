package targets

import (
	"testing"
	"time"

	"github.com/locksteward/locksteward/api"
)

// Pages hear of each percent of a first sweep, of later ones now and then; the log
// hears of any that lasts once a minute.
func TestToWhomASweepIsReported(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		first      bool
		pages, log int
	}{
		"first": {true, 90, 3},
		"later": {false, 18, 3},
	} {
		var reported progressReported
		pages, logged := 0, 0
		for second := 1; second <= 180; second++ {
			s := &api.Sweeping{First: tc.first, Started: began, Percent: new(second / 2)}
			p, l := reported.due(began.Add(time.Duration(second)*time.Second), s)
			if p {
				pages++
			}
			if l {
				logged++
			}
		}
		if pages < tc.pages || pages > tc.pages+1 || logged != tc.log {
			t.Errorf("%s: pages were reported %d times, the log %d times", name, pages, logged)
		}
		if p, l := reported.due(began.Add(time.Hour), nil); p || l {
			t.Errorf("%s: somebody is notified of no sweep", name)
		}
		if _, l := reported.due(began.Add(time.Hour), &api.Sweeping{Started: began.Add(time.Hour)}); l {
			t.Errorf("%s: the log is notified of a sweep that has just begun", name)
		}
	}
}
