package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/catalogue"
	"github.com/locksteward/locksteward/internal/plural"
	"github.com/locksteward/locksteward/internal/users"
)

// pageLocks is how many locks a page lists: with the longest names that have a
// page it stays within 100 KB.
const pageLocks = 50

// locksData is a list of locks with its filter.
type locksData struct {
	InTarget, Classes, Libraries, States, Sorts pick
	Text                                        string
	Filtered                                    bool
	Rows                                        lockTable
	Total                                       int
	Pager                                       pager
	targetHealth
}

// pick is a choice of one.
type pick struct {
	Label, Name, All string
	Options          []option
}

type option struct {
	Value, Name string
	Chosen      bool
}

// add appends a choice; a value that is chosen and not offered is still shown.
func (p *pick) add(value, name, chosen string) {
	p.Options = append(p.Options, option{value, name, value == chosen && value != ""})
}

func (p *pick) keep(chosen string) {
	for _, o := range p.Options {
		if o.Value == chosen {
			return
		}
	}
	if chosen != "" {
		p.add(chosen, chosen, chosen)
	}
}

// pager leads through a list; links that are "" are not there.
type pager struct {
	Before, BeforeName string
	After, AfterName   string
	Shows              string
}

// lockRow is a lock in a list.
type lockRow struct {
	Target, Key, Class, Library string
	DB                          int
	ManyTargets                 bool
	Mode                        string
	Acquired                    time.Time // as the value says
	Doubt                       string    // why the age does not count it
	TTL                         string
	Age                         string        // in words
	Held                        template.HTML // the same, going on; "" if it is not known
	NoTTL                       bool
	OfSession                   bool // it ends with a session
	Holder                      string
	HolderKnown                 bool
	Who                         who // the holder
	Waiters                     string
	Findings                    []string
	State, Tone                 string
}

// lockTable is locks with the columns that have something in them.
type lockTable struct {
	Rows                                []lockRow
	Classes, Holders, Waiters, Findings bool
}

func lockTableOf(rows []lockRow) lockTable {
	out := lockTable{Rows: rows}
	for _, row := range rows {
		out.Classes = out.Classes || row.Class != ""
		out.Holders = out.Holders || row.HolderKnown
		out.Waiters = out.Waiters || row.Waiters != notKnown
		out.Findings = out.Findings || len(row.Findings) > 0
	}
	return out
}

// notKnown is a fact that no library wrote.
const notKnown = "not known"

func lockRows(list []LockRow, manyTargets bool) []lockRow {
	out := make([]lockRow, 0, len(list))
	for _, l := range list {
		row := lockRow{
			Target: l.Target, DB: l.DB, Key: l.Key, Class: l.Class, Library: l.Library, Mode: l.Mode, ManyTargets: manyTargets,
			NoTTL: l.NeverExpires(), OfSession: l.Lifetime == locksteward.LifetimeSession, TTL: span(l.TTL), Age: ageWords(l.Lock, l.Now), Held: heldTag(l.Lock, l.Now), Holder: holder(l.Holder), Waiters: notKnown,
			Acquired: l.Acquired, Findings: l.Rules, State: "clear", Tone: "good",
		}
		if l.Waiters >= 0 {
			row.Waiters = strconv.Itoa(l.Waiters)
		}
		row.HolderKnown, row.Who = row.Holder != notKnown, whoOf(l.Holder)
		_, doubt := l.WrittenAge()
		row.Doubt = catalogue.Text("en", doubt)
		switch {
		case l.State == locksteward.StatusFiring:
			row.State, row.Tone = "firing", "firing"
		case l.State == locksteward.StatusPending:
			row.State, row.Tone = "pending", "pending"
		case l.Kind == locksteward.KindCandidate:
			row.State, row.Tone = "candidate", "quiet"
		}
		out = append(out, row)
	}
	return out
}

// ageWords says for how long a lock has been held by now, as far as it is known.
func ageWords(l locksteward.Lock, now time.Time) string {
	age, basis, minimum := l.AgeAt(now)
	if age > 10*time.Second {
		age = age.Truncate(time.Second)
	}
	switch {
	case basis == locksteward.AgeNone:
		return "not known"
	case minimum:
		return "≥ " + span(age)
	default:
		return span(age)
	}
}

// heldTag is ageWords as a time that goes on; "" if the age is not known.
func heldTag(l locksteward.Lock, now time.Time) template.HTML {
	age, basis, minimum := l.AgeAt(now)
	if basis == locksteward.AgeNone {
		return ""
	}
	return timeTag(timeAge, time.Now().Add(-age), ageWords(l, now), minimum)
}

// locks answers GET /locks.
func (s *Server) locks(w http.ResponseWriter, r *http.Request, who users.User) error {
	q := pageQuery(r, "target", "class", "library", "state", "sort", "q", "cursor")
	filter := LockFilter{
		Target: q.text("target"), Class: q.text("class"), Library: q.text("library"), State: q.oneOf("state", "firing", "pending", "clear", "no-ttl"),
		Text: q.text("q"), Sort: q.oneOf("sort", "key", "age", "ttl"), Limit: pageLocks,
	}
	if filter.Sort == "" {
		filter.Sort = "age"
	}
	filter.After = q.lockPosition(filter.Sort)
	if err := q.err(); err != nil {
		return err
	}
	page, err := s.deps.Locks.ListLocks(filter)
	if err != nil {
		return fmt.Errorf("list locks: %w", err)
	}
	targets := s.deps.Targets.Targets()
	data := locksData{
		Rows: lockTableOf(lockRows(page.Rows, len(targets) > 1)), Total: page.Total, Text: inertTyped(filter.Text), targetHealth: healthOf(targets),
		Filtered: filter.Target+filter.Class+filter.Library+filter.State+filter.Text != "",
	}
	data.limitTo(filter.Target)
	data.choices(filter, targets, s.deps.Targets.Classes(), page.Rows)
	v := s.view(r, who, pageSpec{})
	if filter.After != nil {
		data.Pager.Before, data.Pager.BeforeName = v.With("cursor", ""), "First page"
	}
	if page.Next != nil {
		data.Pager.After, data.Pager.AfterName = v.With("cursor", lockCursorOf(filter.Sort, page.Next)), "Next "+strconv.Itoa(pageLocks)
	}
	data.Pager.Shows = fmt.Sprintf("%d of %s", len(page.Rows), plural.Count(page.Total, "lock"))
	return s.show(w, r, who, pageSpec{name: "locks", section: "/locks", title: "Locks", data: data})
}

// choices are what the filter offers: what is configured, and of libraries those
// on the page.
func (d *locksData) choices(f LockFilter, targets []api.Target, classes []api.Class, rows []LockRow) {
	d.InTarget = pick{Label: "Target", Name: "target", All: "all targets"}
	for _, t := range targets {
		d.InTarget.add(t.Name, t.Name, f.Target)
	}
	d.InTarget.keep(f.Target)
	d.Classes = pick{Label: "Class", Name: "class", All: "all classes"}
	for _, c := range classes {
		d.Classes.add(c.Class, c.Class, f.Class)
	}
	d.Classes.keep(f.Class)
	d.Libraries = pick{Label: "Library", Name: "library", All: "all libraries"}
	seen := map[string]bool{}
	for _, l := range rows {
		if !seen[l.Library] {
			seen[l.Library] = true
			d.Libraries.add(l.Library, l.Library, f.Library)
		}
	}
	d.Libraries.keep(f.Library)
	d.States = pick{Label: "State", Name: "state", All: "any state"}
	for _, o := range [][2]string{{"firing", "firing"}, {"pending", "pending"}, {"clear", "clear"}, {"no-ttl", "without TTL"}} {
		d.States.add(o[0], o[1], f.State)
	}
	d.Sorts = pick{Label: "First", Name: "sort", All: "held longest"}
	for _, o := range [][2]string{{"ttl", "expires next"}, {"key", "by name"}} {
		d.Sorts.add(o[0], o[1], f.Sort)
	}
}

// askedLock is the lock that an address or a form names.
type askedLock struct {
	target string
	db     int
	key    string
}

// lockOf reads which lock is meant from the parameters target, db and key, key_b64
// or key_sha256.
func (s *Server) lockOf(ctx context.Context, q *query) (askedLock, error) {
	out := askedLock{target: q.text("target")}
	if out.target == "" {
		q.bad("target: is missing: use the name of a target")
	}
	var err error
	if out.key, err = (api.Key{Key: q.text("key"), KeyB64: q.text("key_b64")}).Bytes(); err != nil {
		q.bad("%w", err)
	}
	sum := q.text("key_sha256")
	switch raw, err := hex.DecodeString(sum); {
	case sum == "" && !q.values.Has("key") && !q.values.Has("key_b64"):
		q.bad("key: is missing: give key or key_b64")
	case sum == "":
	case q.values.Has("key") || q.values.Has("key_b64"):
		q.bad("key_sha256: cannot be used with key or key_b64")
	case err != nil || len(raw) != sha256.Size:
		q.bad("key_sha256: must be 64 hex digits, got %d characters", len(sum))
	}
	var db *int
	if q.text("db") != "" {
		db = new(q.number("db", 0, 0, 1<<31-1))
	}
	if err := q.err(); err != nil {
		return out, err
	}
	if out.db, err = s.database(out.target, db); err == nil && sum != "" {
		out.key, err = s.keyBySum(ctx, out.target, strings.ToLower(sum))
	}
	return out, err
}

// notFound says that err is that something is not there.
func notFound(err error) bool { return errors.Is(err, locksteward.ErrNotFound) }
