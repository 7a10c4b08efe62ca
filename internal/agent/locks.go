package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/console"
	"github.com/locksteward/locksteward/scanner"
)

// ListLocks returns a page of the locks of all targets, as last seen. It reads the
// tables as they are, in short looks: neither the sweeps nor the rules wait for it,
// nor it for them.
func (a *Agent) ListLocks(f console.LockFilter) (console.LockPage, error) {
	own, err := a.ownLocks(f)
	if err != nil || a.remote == nil {
		return own.Page, err
	}
	all := []locksPart{own}
	all = append(all, a.remoteLocks(f)...)
	return mergePages(all, f.Limit), nil
}

// mergePages makes one page of several, each of which is in order.
func mergePages(parts []locksPart, limit int) console.LockPage {
	type row struct {
		row console.LockRow
		at  console.LockPosition
	}
	var page console.LockPage
	var rows []row
	more := false
	for _, p := range parts {
		page.Total += p.Page.Total
		more = more || p.More
		for i, r := range p.Page.Rows {
			rows = append(rows, row{r, p.At[i]})
		}
	}
	slices.SortFunc(rows, func(x, y row) int { return placedBefore(x.at, y.at) })
	if len(rows) > limit {
		rows, more = rows[:limit], true
	}
	for _, r := range rows {
		page.Rows = append(page.Rows, r.row)
	}
	if n := len(rows); n > 0 && more {
		page.Next = &rows[n-1].at
	}
	return page
}

// ownLocks is the page of what this replica works on.
func (a *Agent) ownLocks(f console.LockFilter) (locksPart, error) {
	query, err := lockQuery(f)
	if err != nil {
		return locksPart{}, err
	}
	merged := merge{order: query.Order, after: f.After}
	var out locksPart
	page := &out.Page
	for _, w := range a.watchedBy(f.Target) {
		own := query
		own.After = merged.afterIn(w.target)
		own.Keep = a.keepIn(w.target, f)
		found := w.scanner.Table().Page(own)
		page.Total += found.Total
		merged.add(w.target, found, w.clock.Now())
	}
	merged.sort()
	rows := merged.rows
	if len(rows) > f.Limit {
		rows, merged.more = rows[:f.Limit], true
	}
	for _, r := range rows {
		m := a.engine.MarkOf(r.lock.Target, r.lock.DB, r.lock.Key)
		page.Rows = append(page.Rows, console.LockRow{Lock: r.lock, Rules: m.Rules, State: m.Status, Now: r.now})
		out.At = append(out.At, r.at)
	}
	if out.More = merged.more; len(rows) > 0 && out.More {
		page.Next = &rows[len(rows)-1].at
	}
	return out, nil
}

// watchedBy is one target, or all in the order of their names; an unknown name is
// none.
func (a *Agent) watchedBy(name string) []*watched {
	var out []*watched
	for own, w := range a.current().targets {
		if name == "" || own == name {
			out = append(out, w)
		}
	}
	slices.SortFunc(out, func(a, b *watched) int { return cmp.Compare(a.target.Name, b.target.Name) })
	return out
}

// lockQuery is what a table is asked for, but for what each target has its own.
func lockQuery(f console.LockFilter) (scanner.Query, error) {
	q := scanner.Query{Class: f.Class, Dialect: f.Dialect, NoTTL: f.State == "no-ttl", Holder: f.Holder, Limit: f.Limit}
	switch f.Sort {
	case "age":
		q.Order = scanner.ByAge
	case "ttl":
		q.Order = scanner.ByTTL
	}
	if f.Match != "" {
		if _, err := class.NewMatchSet([]string{f.Match}); err != nil {
			return q, fmt.Errorf("match: %w: %w", locksteward.ErrInvalid, err)
		}
	}
	return q, nil
}

// keepIn is what decides on a key of a target; nil keeps all.
func (a *Agent) keepIn(t locksteward.Target, f console.LockFilter) func(key string) bool {
	var all []func(key string) bool
	if f.Match != "" {
		if set, err := class.NewMatchSet([]string{f.Match}); err == nil {
			all = append(all, func(key string) bool { return set.Classify(key).Configured })
		}
	}
	if f.Sum != "" {
		all = append(all, func(key string) bool { return len(key) > console.LongKey && console.KeySum(key) == f.Sum })
	}
	if text := strings.ToLower(f.Text); text != "" {
		all = append(all, func(key string) bool { return strings.Contains(strings.ToLower(key), text) })
	}
	switch f.State {
	case "firing", "pending", "clear":
		want := locksteward.Status(f.State)
		if f.State == "clear" {
			want = ""
		}
		all = append(all, func(key string) bool { return a.engine.MarkOf(t.Name, t.DB, key).Status == want })
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return func(key string) bool {
		for _, keep := range all {
			if !keep(key) {
				return false
			}
		}
		return true
	}
}

// merge puts the pages of several targets into one order: by target, database and
// key, behind the value that is sorted by.
type merge struct {
	order scanner.Order
	after *console.LockPosition
	rows  []placed
	more  bool
}

type placed struct {
	lock locksteward.Lock
	at   console.LockPosition
	now  time.Time // by the clock of its server
}

// afterIn is where the page begins in one target.
func (m *merge) afterIn(t locksteward.Target) *scanner.Position {
	p := m.after
	if p == nil {
		return nil
	}
	switch c := cmp.Or(cmp.Compare(t.Name, p.Target), cmp.Compare(t.DB, p.DB)); {
	case c == 0:
		return &scanner.Position{Value: p.Value, Key: p.Key}
	case m.order == scanner.ByKey && c > 0:
		return nil // all of it comes later
	case m.order != scanner.ByKey && c > 0:
		return &scanner.Position{Value: p.Value - 1, Behind: true} // equals come later
	default:
		return &scanner.Position{Value: p.Value, Behind: true} // equals came before
	}
}

func (m *merge) add(t locksteward.Target, p scanner.Page, now time.Time) {
	m.more = m.more || p.More
	for i, l := range p.Locks {
		m.rows = append(m.rows, placed{l, console.LockPosition{Value: p.At[i].Value, Target: t.Name, DB: t.DB, Key: l.Key}, now})
	}
}

func (m *merge) sort() {
	slices.SortFunc(m.rows, func(x, y placed) int { return placedBefore(x.at, y.at) })
}

func placedBefore(a, b console.LockPosition) int {
	return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(a.Target, b.Target), cmp.Compare(a.DB, b.DB), cmp.Compare(a.Key, b.Key))
}
