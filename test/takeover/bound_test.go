package takeover_test

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

const (
	// promised is within what time others have the work of a replica that died, hangs or
	// is cut off.
	promised = 3 * time.Second
	// patience is what no take-over may exceed, whatever else the machine does: a lease
	// and the beats of replicas that wait for their turn.
	patience = 10 * time.Second
	// long is from how many take-overs on a run has the machine for itself: each of them is
	// to be within what is promised then.
	long = 100
)

// judge tells how long the take-overs of each kind took, and fails if that was longer
// than is promised.
func judge(t testing.TB, took map[string][]time.Duration) {
	t.Helper()
	var all []time.Duration
	tell := func(kind string, list []time.Duration) {
		slices.Sort(list)
		t.Logf("%s: %d, taken over within p50 %s, p99 %s, at most %s", kind, len(list), quantile(list, 50), quantile(list, 99), quantile(list, 100))
	}
	for kind, list := range took {
		tell(kind, list)
		all = append(all, list...)
	}
	if len(all) == 0 {
		return // it failed before the first one
	}
	tell("all", all)
	for _, what := range tooLong(all) {
		t.Error(what)
	}
}

// tooLong says in what take-overs, sorted, took longer than is promised.
func tooLong(sorted []time.Duration) (what []string) {
	share := 50
	if len(sorted) >= long {
		share = 100
	}
	if got := quantile(sorted, share); got > promised {
		what = append(what, fmt.Sprintf("%d of 100 take-overs took up to %s, more than %s", share, got, promised))
	}
	if most := quantile(sorted, 100); most > patience {
		what = append(what, fmt.Sprintf("a take-over took %s, more than %s", most, patience))
	}
	return what
}

// quantile is what percent of a sorted list are within.
func quantile(sorted []time.Duration, percent int) time.Duration {
	n := (len(sorted)*percent + 99) / 100 // rounded up
	return sorted[max(n, 1)-1].Round(time.Millisecond)
}

func TestTakeOversAreJudged(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		all, slow int
		as        time.Duration
		wrong     int
	}{
		{20, 0, 0, 0},
		{20, 10, 4 * time.Second, 0},
		{20, 11, 4 * time.Second, 1},
		{20, 1, 11 * time.Second, 1},
		{1, 1, 4 * time.Second, 1},
		{200, 0, 0, 0},
		{200, 1, 4 * time.Second, 1},
		{200, 1, 11 * time.Second, 2},
	} {
		took := slices.Repeat([]time.Duration{2 * time.Second}, tc.all-tc.slow)
		took = append(took, slices.Repeat([]time.Duration{tc.as}, tc.slow)...)
		if got := tooLong(took); len(got) != tc.wrong {
			t.Errorf("%d of %d took %s: %q", tc.slow, tc.all, tc.as, got)
		}
	}
}
