package lockview

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

// Page is a page of locks, with the place of each in the order of all.
type Page struct {
	Page console.LockPage
	At   []console.LockPosition
	More bool
}

// Join makes one page of several, each of which is in order.
func Join(parts []Page, limit int) console.LockPage {
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
	slices.SortFunc(rows, func(x, y row) int { return before(x.at, y.at) })
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

// List returns a page of the locks of targets, as last read.
func List(targets []Target, findings Findings, f console.LockFilter) (Page, error) {
	query, err := lockQuery(f)
	if err != nil {
		return Page{}, err
	}
	merged := merge{order: query.Order, after: f.After}
	var out Page
	page := &out.Page
	for _, t := range targets {
		own := query
		own.After = merged.afterIn(t.Target)
		own.Keep = filter(t.Target, findings, f)
		found := t.Table.Page(own)
		page.Total += found.Total
		merged.add(t.Target, found, t.Now())
	}
	merged.sort()
	rows := merged.rows
	if len(rows) > f.Limit {
		rows, merged.more = rows[:f.Limit], true
	}
	for _, r := range rows {
		m := findings.MarkOf(r.lock.Target, r.lock.DB, r.lock.Key)
		page.Rows = append(page.Rows, console.LockRow{Lock: r.lock, Rules: m.Rules, State: m.Status, Now: r.now})
		out.At = append(out.At, r.at)
	}
	if out.More = merged.more; len(rows) > 0 && out.More {
		page.Next = &rows[len(rows)-1].at
	}
	return out, nil
}

// lockQuery returns what every table is asked for.
func lockQuery(f console.LockFilter) (scanner.Query, error) {
	q := scanner.Query{Class: f.Class, Library: f.Library, NoTTL: f.State == "no-ttl", Holder: f.Holder, Limit: f.Limit}
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

// filter returns a function that selects keys of a target; nil selects all.
func filter(t locksteward.Target, findings Findings, f console.LockFilter) func(key string) bool {
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
		all = append(all, func(key string) bool { return findings.MarkOf(t.Name, t.DB, key).Status == want })
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

// merge puts the pages of several targets into one order: by the sorted value, then by target, database and key.
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

// afterIn returns where the page begins in one target.
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
	slices.SortFunc(m.rows, func(x, y placed) int { return before(x.at, y.at) })
}

func before(a, b console.LockPosition) int {
	return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(a.Target, b.Target), cmp.Compare(a.DB, b.DB), cmp.Compare(a.Key, b.Key))
}
