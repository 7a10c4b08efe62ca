package initcfg

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/plural"
	"github.com/locksteward/locksteward/internal/report"
)

const (
	// maxExamples is how many keys of a class are shown.
	maxExamples = 3
	// enoughLeases is how many locks must have shown their TTL before a limit is
	// written, which is this many times the longest that was seen.
	enoughLeases = 5
	maxTTLFactor = 2
	leastMaxTTL  = time.Minute
)

// Proposal is a class that could be configured, with what was seen of it.
type Proposal struct {
	Family
	// Class is what would be written.
	Class class.Class
	// Holds are those that ended, in one row.
	Row report.Row
	// Open are the locks that are held now, WithoutTTL those of all that were seen.
	Open, WithoutTTL int
	// LibraryCounts counts the locks by the library that wrote them.
	LibraryCounts map[string]int
	// TTLMin and TTLMax are the range of the TTLs that were seen left, LeaseMax the
	// longest that a lock was given as far as is known; 0 without any.
	TTLMin, TTLMax, LeaseMax time.Duration
	// AgeMin and AgeMax are the ages of the locks held now; AgeKnown says that there
	// are any, AgeMinimum that they may be older.
	AgeMin, AgeMax       time.Duration
	AgeKnown, AgeMinimum bool
	// Expect and TTL are the report's suggestions.
	Expect, TTL report.Suggestion
	// MaxTTLReason says where max_ttl comes from or why there is none, TTLReason the
	// same for ttl.
	MaxTTLReason, TTLReason string
}

// Plan is everything that is proposed for one server.
type Plan struct {
	Proposals []Proposal // in the order in which they must be configured
	// Rest are lock keys that no class is proposed for: they stay in the class
	// "default".
	Rest []string
	Seen Seen
}

// Propose groups what was seen into classes of at least least keys or holds.
func Propose(seen Seen, least int) Plan {
	keys := make([]string, 0, len(seen.Locks))
	for key := range seen.Locks {
		keys = append(keys, key)
	}
	families, rest := Patterns(keys)
	place := map[string]int{}
	plan := Plan{Seen: seen, Rest: rest}
	for _, f := range families {
		for _, key := range f.Keys {
			place[key] = len(plan.Proposals)
		}
		plan.Proposals = append(plan.Proposals, Proposal{Family: f, Row: report.Row{Class: f.Name}, LibraryCounts: map[string]int{}})
	}
	for _, h := range seen.Holds {
		if i, ok := place[h.Key]; ok {
			h.Class = plan.Proposals[i].Name
			plan.Proposals[i].Row.Add(h)
		}
	}
	kept := plan.Proposals[:0]
	for _, p := range plan.Proposals {
		if len(p.Keys) < least && p.Row.Holds() < int64(least) {
			plan.Rest = append(plan.Rest, p.Keys...)
			continue
		}
		p.measure(seen)
		p.decide()
		kept = append(kept, p)
	}
	plan.Proposals = kept
	plan.addWaits()
	slices.Sort(plan.Rest)
	return plan
}

// measure adds what the locks of the family showed.
func (p *Proposal) measure(seen Seen) {
	p.LeaseMax = p.Row.Lease.Max()
	for _, key := range p.Keys {
		l := seen.Locks[key]
		p.LibraryCounts[l.Library]++
		switch {
		case l.NeverExpires():
			p.WithoutTTL++
		case l.Lifetime == locksteward.LifetimeSession:
		default:
			if p.TTLMax == 0 || l.TTL < p.TTLMin {
				p.TTLMin = l.TTL
			}
			p.TTLMax = max(p.TTLMax, l.TTL)
			p.LeaseMax = max(p.LeaseMax, report.LeaseOf(l))
		}
		if w, ok := seen.Waits[key]; ok {
			p.Row.WaitersKnown = true
			p.Row.MaxWaiters, p.Row.LongestWait = max(p.Row.MaxWaiters, w.Waiters), max(p.Row.LongestWait, w.Longest)
		}
		open, held := seen.Open[key]
		if !held {
			continue
		}
		p.Open++
		age, basis, minimum := open.Age()
		if basis == locksteward.AgeNone {
			continue
		}
		if !p.AgeKnown || age < p.AgeMin {
			p.AgeMin = age
		}
		p.AgeKnown, p.AgeMinimum = true, p.AgeMinimum || minimum
		p.AgeMax = max(p.AgeMax, age)
	}
}

// addWaits adds what processes reported of the classes that they named, where one family
// alone is of such a class.
func (plan *Plan) addWaits() {
	families := map[string]map[int]bool{} // by what holders call the class
	for i, p := range plan.Proposals {
		for _, key := range p.Keys {
			if c := plan.Seen.Locks[key].Claim; c != nil {
				if families[c.Class] == nil {
					families[c.Class] = map[int]bool{}
				}
				families[c.Class][i] = true
			}
		}
	}
	for _, r := range plan.Seen.Reported {
		said := r.Class
		if said == class.Default {
			said = ""
		}
		if len(families[said]) != 1 {
			continue
		}
		for i := range families[said] {
			row := &plan.Proposals[i].Row
			row.Reported = true
			row.Acquired += r.Acquired
			row.Contended += r.Contended
			row.Failed += r.Failed
		}
	}
}

// decide fills in the class.
func (p *Proposal) decide() {
	p.Expect, p.TTL = report.Suggest(p.Row)
	p.Class = class.Class{Name: p.Name, Match: []string{p.Match}, Expect: p.Expect.Value}
	with := len(p.Keys) - p.WithoutTTL
	p.TTLReason = fmt.Sprintf("%d of %s had a TTL when last seen", with, plural.Count(len(p.Keys), "lock"))
	switch {
	case p.WithoutTTL == 0:
		p.Class.TTL = class.TTLRequired
	case with == 0:
		p.TTLReason += "; write required if that is a fault, allowed-none if it is meant"
	default:
		p.Class.TTL = class.TTLRequired
		p.TTLReason += ", and ttl/none will report the others"
	}
	switch leases := int64(len(p.Keys)-p.WithoutTTL) + p.Row.Lease.Count(); {
	case p.LeaseMax > class.DefaultMaxTTL/maxTTLFactor:
		p.Class.MaxTTL = report.RoundUp(maxTTLFactor * p.LeaseMax)
		p.MaxTTLReason = fmt.Sprintf("%d x the longest TTL that was seen, %s", maxTTLFactor, report.Show(p.LeaseMax))
	case p.LeaseMax > 0 && leases >= enoughLeases:
		p.Class.MaxTTL = report.RoundUp(max(leastMaxTTL, maxTTLFactor*p.LeaseMax))
		p.MaxTTLReason = fmt.Sprintf("%d x the longest TTL that was seen, %s, at least %s", maxTTLFactor, report.Show(p.LeaseMax), report.Show(leastMaxTTL))
	default:
		p.MaxTTLReason = fmt.Sprintf("too few TTLs were seen to say less than %s", report.Show(class.DefaultMaxTTL))
	}
}

// Examples are a few keys of the family, those that are held now first.
func (p Proposal) Examples(seen Seen) []string {
	keys := slices.Clone(p.Keys)
	held := func(key string) int {
		if _, ok := seen.Open[key]; ok {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(keys, func(a, b string) int { return cmp.Compare(held(a), held(b)) })
	return keys[:min(maxExamples, len(keys))]
}

// Libraries names the libraries, the most frequent first.
func (p Proposal) Libraries() []string {
	names := sortedKeys(p.LibraryCounts)
	slices.SortStableFunc(names, func(a, b string) int { return p.LibraryCounts[b] - p.LibraryCounts[a] })
	return names
}

// Watched says whether changes of the class can be watched: its pattern begins
// with enough that is constant.
func (p Proposal) Watched() bool { return len(class.LiteralPrefix(p.Match)) >= leastLiteral }

// Reports gives every row of the plan and every lock that is held now its
// proposed class, for a report without a configuration.
func (plan Plan) Reports(target string) (rows []report.Row, open []locksteward.Lock, set *class.Set, err error) {
	var list []class.Class
	for _, p := range plan.Proposals {
		p.Row.Target = target
		rows = append(rows, p.Row)
		list = append(list, class.Class{Name: p.Name, Match: []string{p.Match}})
	}
	if set, err = class.NewSet(list); err != nil {
		return nil, nil, nil, fmt.Errorf("group locks: %w", err)
	}
	rest := report.Row{Target: target, Class: class.Default}
	for _, h := range plan.Seen.Holds {
		if !set.Classify(h.Key).Configured {
			rest.Add(h)
		}
	}
	if rest.Holds() > 0 {
		rows = append(rows, rest)
	}
	for _, l := range plan.Seen.Open {
		l.Class = class.Default
		if m := set.Classify(l.Key); m.Configured {
			l.Class = m.Class
		}
		open = append(open, l)
	}
	slices.SortFunc(open, func(a, b locksteward.Lock) int { return strings.Compare(a.Key, b.Key) })
	return rows, open, set, nil
}
