package rules

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/catalogue"
	"github.com/locksteward/locksteward/class"
)

// What was seen in one order before a restart of the agent and in the other after
// it is an inversion; the classes are those that are configured now.
func TestOrdersSurviveARestart(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, twoClasses)
	if _, changed := e.Orders("redis", t0); changed {
		t.Error("something to save of a target that was never seen")
	}
	e.Evaluate(holdingSweep(t0, "stock:\xff", "order:1"))
	text, changed := e.Orders("redis", t0)
	if !changed || strings.Contains(text, "hmac-sha256") {
		t.Fatalf("saved %t: %s", changed, text)
	}
	// The same again changes nothing but the time, which is saved now and then.
	e.Evaluate(holdingSweep(after(time.Minute), "stock:\xff", "order:1"))
	if _, changed := e.Orders("redis", after(time.Minute)); changed {
		t.Error("saved again for the time alone")
	}
	if _, changed := e.Orders("redis", after(ordersEvery)); !changed {
		t.Error("the time is never saved")
	}

	restart := func(classes []class.Class) *Engine {
		again := newEngine(t, nil, classes)
		if err := again.RestoreOrders("redis", text); err != nil {
			t.Fatal(err)
		}
		return again
	}
	back := holdingSweep(after(time.Hour), "order:4", "stock:9")
	got := restart(twoClasses).Evaluate(back)
	wantBrief(t, got, "wait/order-inversion firing info stock orders")
	if line := catalogue.Text("en", got[0].Finding.Evidence[0]); !strings.Contains(line, `order:1 was held when stock:\xff was taken`) || !strings.Contains(line, "app shop, host web-1, session s-stock") {
		t.Errorf("evidence %q", line)
	}
	// Under other classes the pair is another one: here both keys are of one class.
	one := []class.Class{{Name: "all", Match: []string{"order:*", "stock:*"}}}
	wantBrief(t, restart(one).Evaluate(back))
	// It is forgotten after a day, however often the agent restarts.
	wantBrief(t, restart(twoClasses).Evaluate(sweepAt(after(25*time.Hour))))
	late := restart(twoClasses)
	late.Evaluate(sweepAt(after(25 * time.Hour)))
	wantBrief(t, late.Evaluate(holdingSweep(after(25*time.Hour+time.Second), "order:4", "stock:9")))

	fresh := newEngine(t, nil, twoClasses)
	for text, want := range map[string]string{"": "", "[": "read orders of target", `{"v": 2}`: "version 2, this program knows 1"} {
		if err := fresh.RestoreOrders("redis", text); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A gate that was held each time is one after the restart as well; and what is
// stored is bounded.
func TestSavedOrdersAreBoundedAndKeepTheirGates(t *testing.T) {
	t.Parallel()
	classes := append([]class.Class(nil), twoClasses...)
	for n := range maxSavedOrders {
		classes = append(classes, class.Class{Name: fmt.Sprintf("c%d", n), Match: []string{fmt.Sprintf("c%d:*", n)}})
	}
	e := newEngine(t, nil, classes)
	e.Evaluate(holdingSweep(after(time.Hour), "stock:1", "gate", "order:1"))
	var many locksteward.Sweep
	for n := range maxSavedOrders {
		s := holdingSweep(t0.Add(time.Duration(n)*time.Second), "stock:2", fmt.Sprintf("c%d:1", n))
		s.Locks[0].History.FirstSeen = time.Time{}
		many.Locks = append(many.Locks, s.Locks...)
	}
	many.Target, many.At, many.Masters = "redis", after(2*time.Hour), []locksteward.MasterPass{{Complete: true}}
	e.Evaluate(many)
	text, _ := e.Orders("redis", after(2*time.Hour))
	if n := strings.Count(text, `"first":`); n != maxSavedOrders {
		t.Errorf("%d pairs stored, want %d", n, maxSavedOrders)
	}
	again := newEngine(t, nil, classes)
	if err := again.RestoreOrders("redis", text); err != nil {
		t.Fatal(err)
	}
	again.Evaluate(holdingSweep(after(3*time.Hour), "order:4", "stock:9", "gate"))
	for _, f := range again.Findings() {
		if f.Class == "orders" && f.Subject == "stock" {
			t.Errorf("although a third lock is held each time: %+v", f)
		}
	}
}
