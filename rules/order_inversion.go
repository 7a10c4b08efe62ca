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
	Cause:    message("wait/order-inversion.cause"),
	Remedy:   message("wait/order-inversion.remedy"),
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
			return fmt.Sprintf("taken in both orders with class %q, but %s was held each time, so the two cannot meet",
				v.There.Then, locksteward.DisplayKey(v.Gates[0]))
		})
	}
	a, b := locksteward.DisplayKey(v.There.First), locksteward.DisplayKey(v.There.Then)
	return in.fires(locksteward.Finding{
		Library:         lossLibrary,
		Summary:         message("wait/order-inversion.summary", a, b),
		Evidence:        []locksteward.Message{orderLine(v.There), orderLine(v.Back)},
		CounterEvidence: []locksteward.Message{message("wait/order-inversion.classes-only")},
	})
}

// orderLine is one order with its example.
func orderLine(o Order) locksteward.Message {
	who := named(o.Holder.App, o.Holder.Host)
	if o.Session != "" {
		who = append(who, sessionPart(o.Session))
	}
	return message("wait/order-inversion.order", locksteward.DisplayKey(o.First), locksteward.DisplayKey(o.Then), locksteward.LockName(o.FirstKey), locksteward.LockName(o.ThenKey), o.At, inBrackets(who))
}
