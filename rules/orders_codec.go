package rules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
)

const (
	ordersVersion = 1
	// ordersEvery is how often orders are saved of which nothing is new but when
	// they were seen last.
	ordersEvery = 5 * time.Minute
	// maxSavedOrders bounds what is saved of a target: the newest.
	maxSavedOrders = 1000
	// maxSavedGates bounds the locks that were held beside a pair. A pair with more
	// is not saved: with fewer gates it would be another one.
	maxSavedGates = 64
)

// ordersRow is how the orders of a target are stored. It holds names of keys and
// of holders, and no token. Keys are bytes: they may be no text.
type ordersRow struct {
	Version int        `json:"v"`
	Began   time.Time  `json:"began"`
	Pairs   []orderRow `json:"pairs"`
}

type orderRow struct {
	DB      int       `json:"db"`
	First   []byte    `json:"first"`
	Then    []byte    `json:"then"`
	At      time.Time `json:"at"`
	Session string    `json:"session,omitempty"`
	App     string    `json:"app,omitempty"`
	Host    string    `json:"host,omitempty"`
	Gates   [][]byte  `json:"gates,omitempty"`
}

// Orders returns what is known of the orders in which the classes of a target are
// taken, for [Engine.RestoreOrders] after a restart. It is false while nothing is
// new since the call before, and while that was less than 5 minutes ago if nothing
// is new but when a pair was seen last. now is the server's time.
func (e *Engine) Orders(target string, now time.Time) (text string, changed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	o := e.orders[target]
	if o == nil || !o.unsaved || !o.another && now.Sub(o.savedAt) < ordersEvery {
		return "", false
	}
	o.unsaved, o.another, o.savedAt = false, false, now
	row := ordersRow{Version: ordersVersion, Began: o.began, Pairs: []orderRow{}}
	for id, pair := range o.pairs {
		if len(pair.gates) > maxSavedGates {
			continue
		}
		r := orderRow{
			DB: id.db, First: []byte(pair.FirstKey), Then: []byte(pair.ThenKey), At: pair.At,
			Session: pair.Session, App: pair.Holder.App, Host: pair.Holder.Host,
		}
		for _, key := range pair.gates {
			r.Gates = append(r.Gates, []byte(key))
		}
		row.Pairs = append(row.Pairs, r)
	}
	slices.SortFunc(row.Pairs, func(a, b orderRow) int {
		return cmp.Or(b.At.Compare(a.At), slices.Compare(a.First, b.First), slices.Compare(a.Then, b.Then), cmp.Compare(a.DB, b.DB))
	})
	row.Pairs = row.Pairs[:min(len(row.Pairs), maxSavedOrders)]
	raw, err := json.Marshal(row)
	return string(raw), err == nil
}

// RestoreOrders takes what [Engine.Orders] gave before a restart; "" is nothing.
// The keys are sorted into the classes as they are now. It is for before the first
// sweep of the target.
func (e *Engine) RestoreOrders(target, text string) error {
	if text == "" {
		return nil
	}
	var row ordersRow
	if err := json.Unmarshal([]byte(text), &row); err != nil {
		return fmt.Errorf("read orders of target %q: %w", target, err)
	}
	if row.Version != ordersVersion {
		return fmt.Errorf("read orders of target %q: version %d, this program knows %d", target, row.Version, ordersVersion)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	o := &ordersOf{began: row.Began, of: e.policy, pairs: map[orderID]*order{}}
	for _, r := range row.Pairs {
		id := orderID{db: r.DB, first: className(e.policy, string(r.First)), then: className(e.policy, string(r.Then))}
		known, twice := o.pairs[id]
		if id.first == id.then || len(o.pairs) >= maxOrders && !twice {
			continue
		}
		pair := &order{Order: Order{
			First: id.first, Then: id.then, FirstKey: string(r.First), ThenKey: string(r.Then), At: r.At, Session: r.Session,
			Holder: locksteward.Holder{App: r.App, Host: r.Host},
		}}
		for _, key := range r.Gates {
			pair.gates = append(pair.gates, string(key))
		}
		if twice { // two classes have become one
			pair.gates = slices.DeleteFunc(pair.gates, func(k string) bool { return !slices.Contains(known.gates, k) })
			if pair.At.Before(known.At) {
				known.gates = pair.gates
				continue
			}
		}
		o.pairs[id] = pair
	}
	e.orders[target] = o
	return nil
}
