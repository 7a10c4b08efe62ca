package store_test

import (
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
)

func TestChangeFindings(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		finding := func(target, key string, status locksteward.Status) locksteward.Finding {
			return locksteward.Finding{
				Rule: "ttl/none", Severity: locksteward.SeverityCritical, Status: status, Target: target, Class: "orders", Key: key,
				Summary: locksteward.Literal(string(status)), Since: at,
			}
		}
		stays, fires, ends := finding("a", "stays", locksteward.StatusFiring), finding("a", "fires", locksteward.StatusPending), finding("a", "ends", locksteward.StatusFiring)
		other := finding("b", "ends", locksteward.StatusFiring)
		if err := s.SaveFindings(t.Context(), "a", slices.Values([]locksteward.Finding{stays, fires, ends})); err != nil {
			t.Fatal(err)
		}
		if err := s.SaveFindings(t.Context(), "b", slices.Values([]locksteward.Finding{other})); err != nil {
			t.Fatal(err)
		}
		fires.Status, ends.Status = locksteward.StatusFiring, locksteward.StatusResolved
		begins := finding("a", "begins \xff", locksteward.StatusFiring)
		if err := s.UpdateFindings(t.Context(), "a", slices.Values([]locksteward.Finding{fires, ends, begins})); err != nil {
			t.Fatal(err)
		}
		want := map[string]locksteward.Finding{"stays": stays, "fires": fires, "begins \xff": begins}
		got, err := s.LoadFindings(t.Context(), "a")
		if err != nil || len(got) != len(want) {
			t.Fatalf("%d findings, %v", len(got), err)
		}
		for _, f := range got {
			if !reflect.DeepEqual(f, want[f.Key]) {
				t.Errorf("got  %+v\nwant %+v", f, want[f.Key])
			}
		}
		if got, err := s.LoadFindings(t.Context(), "b"); err != nil || len(got) != 1 {
			t.Errorf("another target has %d findings, %v", len(got), err)
		}
		if err := s.SaveFindings(t.Context(), "a", nil); err != nil {
			t.Fatal(err)
		}
		if got, err := s.FindingTargets(t.Context()); err != nil || !slices.Equal(got, []string{"b"}) {
			t.Errorf("targets %v, %v", got, err)
		}
	})
}

// A finding that fired and ended, or ended and fired, in one evaluation is as it was
// last, also where a storm is written in parts.
func TestChangeFindingsKeepsTheLast(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		finding := func(key string, status locksteward.Status) locksteward.Finding {
			return locksteward.Finding{Rule: "ttl/none", Severity: locksteward.SeverityCritical, Status: status, Target: "a", Class: "orders", Key: key}
		}
		var storm []locksteward.Finding
		for i := range 1200 {
			key := "lock:" + strconv.Itoa(i%700)
			storm = append(storm, finding(key, locksteward.StatusFiring), finding(key, locksteward.StatusResolved))
			if i%700 == 3 {
				storm = append(storm, finding(key, locksteward.StatusFiring))
			}
		}
		made := 0
		err := s.UpdateFindings(t.Context(), "a", func(yield func(locksteward.Finding) bool) {
			for _, f := range storm {
				if made++; !yield(f) {
					return
				}
			}
		})
		if err != nil || made != len(storm) {
			t.Fatalf("%d of %d were asked for, %v", made, len(storm), err)
		}
		got, err := s.LoadFindings(t.Context(), "a")
		if err != nil || len(got) != 1 || got[0].Key != "lock:3" || got[0].Status != locksteward.StatusFiring {
			t.Errorf("stored are %+v, %v", got, err)
		}
	})
}
