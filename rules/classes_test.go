package rules

import (
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/catalogue"
	"github.com/locksteward/locksteward/class"
)

var twoClasses = []class.Class{
	{Name: "orders", Match: []string{"order:*"}, Team: "shop"}, {Name: "stock", Match: []string{"stock:*"}},
}

// holding is a sweep in which a session has key, and had the others before.
func holdingSweep(at time.Time, key string, others ...string) locksteward.Sweep {
	l := ourLock("redis", key, "c-"+key, "s-"+key, at)
	l.Claim.Holding, l.History.FirstSeen = others, at
	return sweepAt(at, l)
}

func TestClassesTakenInBothOrders(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, twoClasses)
	wantBrief(t, e.Evaluate(holdingSweep(t0, "stock:1", "order:1")))
	// The same class twice, and a lock of no class, are no inversion of these.
	wantBrief(t, e.Evaluate(holdingSweep(after(time.Minute), "order:2", "order:3", "other")))
	got := e.Evaluate(holdingSweep(after(2*time.Minute), "order:4", "stock:9"))
	wantBrief(t, got, "wait/order-inversion firing info stock orders")
	f := got[0].Finding
	if f.Class != "orders" || f.Subject != "stock" || f.Team != "shop" || f.Key != "" || len(f.Evidence) != 2 {
		t.Errorf("finding %+v", f)
	}
	for i, want := range []string{"order:1 was held when stock:1 was taken", "stock:9 was held when order:4 was taken"} {
		if !strings.Contains(catalogue.Text("en", f.Evidence[i]), want) {
			t.Errorf("evidence %q does not say %q", catalogue.Text("en", f.Evidence[i]), want)
		}
	}
	// It is remembered, and reported once, until neither has been seen for a day.
	wantBrief(t, e.Evaluate(cut(sweepAt(after(23*time.Hour)))))
	wantBrief(t, e.Evaluate(sweepAt(after(24*time.Hour))))
	for _, v := range e.Explain(ourLock("redis", "stock:5", "c", "s", t0)) {
		// Its class is the second of the finding.
		if v.Rule == orderInversionDoc.Name && v.Result != Clear {
			t.Errorf("a lock of the default class: %+v", v)
		}
	}
	stock := ourLock("redis", "stock:5", "c", "s", t0)
	stock.Class = "stock"
	for _, v := range e.Explain(stock) {
		if v.Rule == orderInversionDoc.Name && (v.Result != Fires || v.Finding.Class != "orders" || v.Finding.Status != locksteward.StatusFiring) {
			t.Errorf("a lock of the second class: %+v", v)
		}
	}

	again := newEngine(t, nil, twoClasses)
	again.Restore(e.Findings())
	wantBrief(t, again.Evaluate(sweepAt(after(24*time.Hour))))
	wantFindings(t, again, "wait/order-inversion firing info stock orders")

	wantBrief(t, e.Evaluate(sweepAt(after(25*time.Hour))), "wait/order-inversion resolved info stock orders")
	wantBrief(t, again.Evaluate(sweepAt(after(49*time.Hour))), "wait/order-inversion resolved info stock orders")
}

func TestAGateKeepsOrdersApart(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, twoClasses)
	e.Evaluate(holdingSweep(t0, "stock:1", "gate", "order:1"))
	e.Evaluate(holdingSweep(after(time.Minute), "order:4", "stock:9", "gate"))
	for _, f := range e.Findings() {
		if f.Rule == orderInversionDoc.Name && (f.Class == "orders" || f.Subject == "orders") && f.Subject == "stock" {
			t.Errorf("although a third lock is held each time: %+v", f)
		}
	}
	got := e.Evaluate(holdingSweep(after(2*time.Minute), "order:5", "stock:9"))
	wantBrief(t, got, "wait/order-inversion firing info stock orders")
}

func beating(at time.Time, all ...locksteward.Instance) locksteward.Sweep {
	s := sweepAt(at)
	s.Instances = all
	return s
}

func beatOf(id string, started time.Time, acquired, failed int64) locksteward.Instance {
	return locksteward.Instance{ID: id, Started: started, Counts: map[string]locksteward.Counts{
		"orders": {Acquired: acquired, Failed: failed, Contended: failed}, "_other": {Failed: 1 << 40},
	}}
}

func TestFailuresAreCountedFromTheFirstLook(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, twoClasses)
	old := t0.Add(-time.Hour)
	// What was before is of no known time.
	wantBrief(t, e.Evaluate(beating(t0, beatOf("a", old, 0, 1000))))
	wantBrief(t, e.Evaluate(beating(after(30*time.Second), beatOf("a", old, 9, 1010))))
	// A process that began since tells all of itself; one that was only not seen
	// before does not.
	got := e.Evaluate(beating(after(time.Minute), beatOf("a", old, 9, 1010), beatOf("b", after(40*time.Second), 3, 5), beatOf("c", old, 0, 500)))
	wantBrief(t, got, "contention/high firing info  orders")
	f := got[0].Finding
	if f.Class != "orders" || f.Team != "shop" || catalogue.Text("en", f.Summary) != "class orders: 15 of 27 acquires ended without the lock (56 %), above the limit of 50 %" ||
		!strings.HasPrefix(catalogue.Text("en", f.Evidence[0]), "counted by 2 processes since 2026-03-01T12:00:00Z") {
		t.Errorf("finding %+v", f)
	}
	// Counts that go back are another process's.
	wantBrief(t, e.Evaluate(beating(after(90*time.Second), beatOf("a", old, 0, 0))))
	wantBrief(t, e.Evaluate(cut(beating(after(2*time.Minute), beatOf("a", old, 500, 0)))))
	wantBrief(t, e.Evaluate(beating(after(150*time.Second), beatOf("a", old, 500, 0))), "contention/high resolved info  orders")
	// After a restart there is nothing to compare with for a while.
	e.Evaluate(beating(after(160*time.Second), beatOf("a", old, 500, 5000)))
	again := newEngine(t, nil, twoClasses)
	again.Restore(e.Findings())
	wantFindings(t, again, "contention/high firing info  orders")
	wantBrief(t, again.Evaluate(beating(after(170*time.Second), beatOf("a", old, 500, 5000))))
	wantBrief(t, again.Evaluate(beating(after(480*time.Second), beatOf("a", old, 500, 5000))), "contention/high resolved info  orders")
}
