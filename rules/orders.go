package rules

import (
	"cmp"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// orderWindow is for how long it is remembered that two classes were taken one
// after the other: code that runs once a day must meet what runs each minute.
const orderWindow = 24 * time.Hour

// maxOrders bounds how many ordered pairs of classes are remembered of a target.
const maxOrders = 4096

// Order is one time that a session took a lock while it held one of another
// class.
type Order struct {
	First, Then       string // classes
	FirstKey, ThenKey string
	At                time.Time // when the second was taken, or seen
	Session           string
	Holder            locksteward.Holder
}

// Inversion is two classes of a target that were taken in both orders.
type Inversion struct {
	// There was taken in the order of the classes' names, Back against it.
	There, Back Order
	// Gates are locks that were held each time, in both orders: while they are,
	// the two cannot meet.
	Gates []string
}

// orders are the ordered pairs of classes, by target.
type orders map[string]*ordersOf

// ordersOf are those of one target.
type ordersOf struct {
	began time.Time // server time of the first sweep since the classes are these
	last  time.Time // of the last one
	of    *policy   // the classes that they were sorted by
	pairs map[orderID]*order

	// What is not stored: unsaved says that there is something, another that it is
	// more than when a pair was seen last.
	unsaved, another bool
	savedAt          time.Time
}

type orderID struct {
	db          int
	first, then string
}

// order is an [Order] with what was held each time beside its two locks.
type order struct {
	Order
	gates []string
}

// take notes the orders that the locks of a sweep report: the metadata of a
// lock lists what its session held when it took it.
func (all orders) take(s locksteward.Sweep, p *policy) *ordersOf {
	o, ok := all[s.Target]
	if !ok {
		o = &ordersOf{began: s.At, pairs: map[orderID]*order{}}
		all[s.Target] = o
	}
	if o.of != p {
		// Other classes: all is to be sorted anew.
		o.of, o.began, o.last = p, s.At, time.Time{}
		o.unsaved, o.another = true, len(o.pairs) > 0
		clear(o.pairs)
	}
	for l := range s.AllLocks() {
		if l.Claim == nil || len(l.Claim.Holding) == 0 || l.Kind == locksteward.KindCandidate {
			continue
		}
		if !o.last.IsZero() && !l.History.FirstSeen.IsZero() && !l.History.FirstSeen.After(o.last) {
			continue // what it tells was noted when it was new
		}
		o.note(l, s.At, p)
	}
	o.last = s.At
	o.forget(s.At)
	return o
}

func (o *ordersOf) note(l *locksteward.Lock, now time.Time, p *policy) {
	then := className(p, l.Key)
	for _, key := range l.Claim.Holding {
		first := className(p, key)
		if first == then {
			continue
		}
		gates := slices.DeleteFunc(slices.Clone(l.Claim.Holding), func(k string) bool { return k == key })
		id := orderID{db: l.DB, first: first, then: then}
		known, ok := o.pairs[id]
		if ok {
			gates = slices.DeleteFunc(gates, func(k string) bool { return !slices.Contains(known.gates, k) })
		} else if len(o.pairs) >= maxOrders {
			o.dropOldest()
		}
		at := l.Claim.Acquired
		if at.IsZero() || at.After(now) {
			at = now
		}
		o.unsaved = true
		o.another = o.another || !ok || len(gates) != len(known.gates)
		if ok && at.Before(known.At) {
			known.gates = gates
			continue
		}
		o.pairs[id] = &order{
			Order: Order{First: first, Then: then, FirstKey: key, ThenKey: l.Key, At: at, Session: l.Claim.Session, Holder: l.Holder},
			gates: gates,
		}
	}
}

// className is the class of a key that may not be a lock any more.
func className(p *policy, key string) string {
	return cmp.Or(p.classes.Classify(key).Class, class.Default)
}

func (o *ordersOf) forget(now time.Time) {
	for id, pair := range o.pairs {
		if now.Sub(pair.At) > orderWindow {
			delete(o.pairs, id)
			o.unsaved = true
		}
	}
}

func (o *ordersOf) dropOldest() {
	var oldest orderID
	var at time.Time
	for id, pair := range o.pairs {
		if at.IsZero() || pair.At.Before(at) {
			oldest, at = id, pair.At
		}
	}
	delete(o.pairs, oldest)
}

// inversions are the pairs that were taken in both orders, by their place: the
// class whose name comes first.
func (o *ordersOf) inversions() map[orderID]*Inversion {
	out := map[orderID]*Inversion{}
	for id, there := range o.pairs {
		if id.first > id.then {
			continue
		}
		if back, ok := o.pairs[orderID{db: id.db, first: id.then, then: id.first}]; ok {
			out[id] = invert(there, back)
		}
	}
	return out
}

func invert(there, back *order) *Inversion {
	gates := slices.DeleteFunc(slices.Clone(there.gates), func(k string) bool { return !slices.Contains(back.gates, k) })
	return &Inversion{There: there.Order, Back: back.Order, Gates: gates}
}
