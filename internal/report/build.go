package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/plural"
)

// maxShown is how many keys a report shows of each class.
const maxShown = 10

// Input is what a report is made of.
type Input struct {
	// Since and Until are the time that the rows cover.
	Since, Until time.Time
	Rows         []Row
	// Open are the locks that are held now.
	Open []locksteward.Lock
	// Classes are those that are configured; nil for none.
	Classes *class.Set
	// OnlyClass leaves all others out; "" is all.
	OnlyClass string
	// Notes are printed with the report.
	Notes []string
}

// Build makes the report.
func Build(in Input) api.Report {
	out := api.Report{Since: in.Since.UTC(), Until: in.Until.UTC(), Classes: []api.ClassReport{}, Notes: append([]string{}, in.Notes...)}
	classes := collect(in)
	for _, id := range slices.SortedFunc(keys(classes), func(a, b classID) int {
		return cmp.Or(strings.Compare(a.target, b.target), strings.Compare(a.class, b.class))
	}) {
		c := classes[id]
		out.Classes = append(out.Classes, c.report(id, in.Classes))
	}
	if len(out.Classes) == 0 {
		out.Notes = append(out.Notes, "no lock was held in this time, as far as anybody looked")
	}
	return out
}

type classID struct{ target, class string }

// family is all that is known of one class of one target.
type family struct {
	row  Row
	open []locksteward.Lock
}

func keys(m map[classID]*family) func(func(classID) bool) {
	return func(yield func(classID) bool) {
		for id := range m {
			if !yield(id) {
				return
			}
		}
	}
}

func collect(in Input) map[classID]*family {
	out := map[classID]*family{}
	of := func(target, name string) *family {
		id := classID{target, cmp.Or(name, class.Default)}
		if out[id] == nil {
			out[id] = &family{row: Row{Target: id.target, Class: id.class}}
		}
		return out[id]
	}
	wanted := func(name string) bool { return in.OnlyClass == "" || in.OnlyClass == cmp.Or(name, class.Default) }
	for _, r := range in.Rows {
		if wanted(r.Class) {
			of(r.Target, r.Class).row.Merge(r)
		}
	}
	for _, l := range in.Open {
		if wanted(l.Class) && l.Kind != locksteward.KindCandidate {
			f := of(l.Target, l.Class)
			f.open = append(f.open, l)
		}
	}
	return out
}

func (f *family) report(id classID, classes *class.Set) api.ClassReport {
	r := f.row
	out := api.ClassReport{
		Target: id.target, Class: id.class, Match: []string{}, Holds: r.Holds(),
		P50: r.hold(0.5), P95: r.hold(0.95), P99: r.hold(0.99),
		Ended: api.HoldEndings{
			Released: r.Endings[locksteward.EndedReleased], Expired: r.Endings[locksteward.EndedExpired],
			Deleted: r.Endings[locksteward.EndedDeleted], Replaced: r.Endings[locksteward.EndedReplaced],
		},
		Open: api.OpenHolds{Locks: len(f.open)}, Worst: []api.HeldKey{}, Notes: []string{},
		Contention: r.contention(),
	}
	known := classes != nil
	if known {
		var c class.Class
		if c, known = classes.Get(id.class); known {
			out.Team, out.Match = c.Team, append(out.Match, c.Match...)
			if c.Expect > 0 {
				out.ExpectMs = new(c.Expect.Milliseconds())
			}
		}
	}
	lease := r.Lease.Clone()
	for _, l := range f.open {
		if l.NeverExpires() {
			out.Open.WithoutTTL++
		} else if d := LeaseOf(l); d > 0 {
			lease.Add(d)
		}
	}
	if low, high, ok := lease.Quantile(0.5, 0); ok {
		out.TTL = &api.HoldBounds{AtLeastMs: low.Milliseconds(), AtMostMs: new(ceilMs(high))}
	}
	out.Worst = append(out.Worst, f.worst()...)
	if len(out.Worst) > 0 {
		out.Longest = new(out.Worst[0])
	}
	expect, ttl := Suggest(r)
	out.Suggested = api.SuggestedPolicy{ExpectReason: expect.Reason, TTLReason: ttl.Reason}
	if expect.Value > 0 {
		out.Suggested.ExpectMs = new(expect.Value.Milliseconds())
	}
	if ttl.Value > 0 {
		out.Suggested.TTLMs = new(ttl.Value.Milliseconds())
	}
	out.Notes = append(out.Notes, f.notes(classes != nil && !known)...)
	return out
}

// hold is a quantile of the holds, nil without any.
func (r Row) hold(q float64) *api.HoldBounds {
	low, _, ok := r.Low.Quantile(q, 0)
	if !ok {
		return nil
	}
	out := &api.HoldBounds{AtLeastMs: low.Milliseconds()}
	if _, high, ok := r.High.Quantile(q, r.unbounded()); ok {
		out.AtMostMs = new(ceilMs(high))
	}
	return out
}

// ceilMs keeps an upper bound one.
func ceilMs(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

func (r Row) contention() *api.Contention {
	if !r.Reported && !r.WaitersKnown {
		return nil
	}
	out := &api.Contention{}
	if r.Reported {
		out.Acquired, out.Contended, out.Failed = new(r.Acquired), new(r.Contended), new(r.Failed)
	}
	if r.WaitersKnown {
		out.MaxWaiters, out.LongestWaitMs = new(r.MaxWaiters), new(r.LongestWait.Milliseconds())
	}
	return out
}

// worst are the keys with the longest holds, those that last among them.
func (f *family) worst() []api.HeldKey {
	all := slices.Clone(f.row.Worst)
	for _, l := range f.open {
		age, basis, minimum := l.Age()
		if basis == locksteward.AgeNone {
			continue
		}
		w := Worst{Key: l.Key, DB: l.DB, Holder: HolderText(l.Holder), Low: age}
		if !minimum {
			w.High, w.Bounded = age, true
		}
		all = append(all, w)
	}
	var out []api.HeldKey
	for _, w := range worstOf(all, maxShown) {
		k := api.HeldKey{
			DB: w.DB, Key: api.NewKey(w.Key), HoldBounds: api.HoldBounds{AtLeastMs: w.Low.Milliseconds()},
			How: cmp.Or(string(w.How), "held"), Holder: w.Holder,
		}
		if !w.EndedAt.IsZero() {
			k.EndedAt = w.EndedAt.UTC().Truncate(time.Millisecond)
		}
		if w.Bounded {
			k.AtMostMs = new(ceilMs(w.High))
		}
		out = append(out, k)
	}
	return out
}

func (f *family) notes(forgotten bool) []string {
	r := f.row
	var out []string
	if forgotten {
		out = append(out, "this class is not configured any more")
	}
	if r.Holds() == 0 {
		out = append(out, "no hold ended while anybody looked: there are no quantiles yet")
	}
	if n := r.unbounded(); n > 0 {
		out = append(out, fmt.Sprintf("%s had begun before anybody looked: their length is a minimum", plural.Count(n, "hold")))
	}
	if r.Several > 0 {
		out = append(out, fmt.Sprintf("%s may be several of one holder in a row, since the token does not change: their length is a maximum", plural.Count(r.Several, "hold")))
	}
	if r.Reported && r.Acquired > r.Holds() {
		out = append(out, fmt.Sprintf("processes report %d acquisitions, so at least %s were too short to be seen: true quantiles are lower", r.Acquired, plural.Count(r.Acquired-r.Holds(), "hold")))
	}
	if n := r.NoTTL; n > 0 {
		out = append(out, fmt.Sprintf("%s had no TTL", plural.Count(n, "hold")))
	}
	return out
}
