package rules

import (
	"fmt"

	"github.com/locksteward/locksteward"
)

// orderInversion reports classes that are taken in both orders: a deadlock that
// has not happened yet.
type orderInversion struct{}

var orderInversionDoc = Doc{
	Name:     "wait/order-inversion",
	Title:    "Locks of two classes are taken in both orders",
	Scope:    ScopeOrder,
	Since:    "0.1.0",
	Severity: locksteward.SeverityInfo,
	Risk:     locksteward.RiskDeadlock,
	Cause: locksteward.Text{
		EN: "One piece of code takes a lock of the first class and then one of the second, another takes them the other way round. When both get their first lock at the same time, each waits for the other.",
		ZH: "一段代码先取第一个 class 的锁再取第二个，另一段代码顺序相反。若两者同时取得各自的第一把锁，就会互相等待。",
	},
	Remedy: locksteward.Text{
		EN: "Agree on one order of the classes and take them in it everywhere, or take a lock around both. Until then bound the wait with Lease.Wait, and give up what is held when it ends.",
		ZH: "约定各 class 的加锁顺序并处处遵守，或在两者之外再加一把锁。在此之前用 Lease.Wait 限制等待时间，超时后放弃已持有的锁。",
	},
}

// Doc implements [Rule].
func (orderInversion) Doc() Doc { return orderInversionDoc }

// Evaluate implements [Rule].
func (orderInversion) Evaluate(in Input) Verdict {
	v := in.Inversion
	if v == nil {
		return in.clear(because("no class is known that is taken before this one and after it"))
	}
	if len(v.Gates) > 0 {
		return in.clear(func() string {
			return fmt.Sprintf("taken in both orders with class %q, but lock %s was held each time, so the two cannot meet",
				v.There.Then, locksteward.DisplayKey(v.Gates[0]))
		})
	}
	a, b := locksteward.DisplayKey(v.There.First), locksteward.DisplayKey(v.There.Then)
	return in.fires(locksteward.Finding{
		Library: lossLibrary,
		Summary: text("locks of class %s and class %s are taken in both orders: a deadlock waits to happen",
			"class %s 与 class %s 的锁以两种顺序被获取：存在潜在死锁", a, b),
		Evidence: []locksteward.Text{orderLine(v.There), orderLine(v.Back)},
		CounterEvidence: []locksteward.Text{{
			EN: "classes are compared, not keys: the two may never touch the same locks, or never run at the same time",
			ZH: "比较的是 class 而不是键：两者可能从不涉及相同的锁，或从不同时运行",
		}},
	})
}

// orderLine is one order with its example.
func orderLine(o Order) locksteward.Text {
	who := named(o.Holder.App, o.Holder.Host)
	if o.Session != "" {
		who = append(who, sessionPart(o.Session))
	}
	return phrase("%s, then %s: lock %s was held when lock %s was taken at %s%s", "先 %s，后 %s：持有锁 %s 时取得了锁 %s，时间为 %s%s",
		locksteward.DisplayKey(o.First), locksteward.DisplayKey(o.Then),
		locksteward.MarkKey(o.FirstKey), locksteward.MarkKey(o.ThenKey), at(o.At), aside(who))
}
