package histories_test

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/catalogue"
)

// edge is one wait for one hold.
type edge struct {
	wait, claim string
	key         string
	from, to    string // sessions
	// inferred says that the lock itself does not name its session: another one of
	// it says that it had this one.
	inferred bool
}

// graph is who waits for whom, as records on the server say: those past their time
// are dead.
func (w *world) graph() []edge {
	var out []edge
	for _, c := range w.waits {
		h := w.holds[c.key]
		if c.until.Before(w.now) || h == nil {
			continue
		}
		e := edge{wait: c.id, key: c.key, from: cmp.Or(c.session, c.id)}
		if h.own.claimed(w.now) {
			e.claim, e.to = h.own.id, h.own.thread()
		} else if e.claim, e.to = h.value, w.inferred(c.key); e.to != "" {
			e.inferred = true
		} else {
			continue
		}
		out = append(out, e)
	}
	return out
}

// inferred is the session of which another lock says that it had this one: the
// last one to say so.
func (w *world) inferred(key string) string {
	session, last := "", time.Time{}
	for _, k := range slices.Sorted(maps.Keys(w.holds)) {
		h := w.holds[k]
		if h.own.claimed(w.now) && h.own.session != "" && slices.Contains(h.own.holding, key) && h.taken.After(last) {
			session, last = h.own.session, h.taken
		}
	}
	return session
}

// knots are the groups of sessions of which each waits for each, over others.
func knots(edges []edge) [][]string {
	next := map[string][]string{}
	for _, e := range edges {
		next[e.from] = append(next[e.from], e.to)
	}
	reach := func(from string) map[string]bool {
		seen, todo := map[string]bool{}, slices.Clone(next[from])
		for len(todo) > 0 {
			s := todo[0]
			todo = todo[1:]
			if !seen[s] {
				seen[s] = true
				todo = append(todo, next[s]...)
			}
		}
		return seen
	}
	var out [][]string
	done := map[string]bool{}
	for _, s := range slices.Sorted(maps.Keys(next)) {
		if done[s] {
			continue
		}
		there := reach(s)
		if !there[s] {
			continue
		}
		var knot []string
		for _, other := range slices.Sorted(maps.Keys(there)) {
			if reach(other)[s] {
				knot, done[other] = append(knot, other), true
			}
		}
		out = append(out, knot)
	}
	return out
}

var memberLine = regexp.MustCompile(`^session (\S+) holds (\S+) .* and waits for (\S+)`)

// judgeCycles compares the deadlocks that are reported with those that are there.
func (w *world) judgeCycles(full bool, covers func(key string) bool) {
	now := w.graph()
	counts := map[edge]int{}
	for e, n := range w.truth.edges {
		if !covers(e.key) {
			counts[e] = n
		}
	}
	for _, e := range now {
		if covers(e.key) {
			counts[e] = w.truth.edges[e] + 1
		}
	}
	w.truth.edges = counts

	reported := map[string]bool{} // sessions
	for _, f := range w.agent.engine.Findings() {
		if f.Rule != "wait/cycle" {
			continue
		}
		whole := true
		for _, line := range f.Evidence {
			if m := memberLine.FindStringSubmatch(catalogue.Text("en", line)); m != nil {
				reported[m[1]] = reported[m[1]] || f.Status == locksteward.StatusFiring
				whole = whole && covers(m[2]) && covers(m[3])
			}
		}
		if whole { // else it is from an earlier look
			w.truth.seen.count("wait/cycle " + string(f.Status))
			w.judgeRound(f, now)
		}
	}
	for _, knot := range knots(now) {
		// "fires when two reads saw the same holds and the same waits"; "of sessions
		// that are tied into several rounds one round is reported", which may be one that
		// was read only once.
		sure, reads := true, 1<<30
		for _, e := range now {
			if slices.Contains(knot, e.from) && slices.Contains(knot, e.to) {
				sure = sure && !e.inferred
				reads = min(reads, counts[e])
			}
		}
		if sure && reads >= 2 && !slices.ContainsFunc(knot, func(s string) bool { return reported[s] }) {
			w.fail("%s: sessions %q wait for each other, in %d reads, and nobody is notified", w.now.Sub(w.began), knot, reads)
		}
		if full && sure && reads == 1 {
			w.judgeDue(knot, now)
		}
	}
}

// english is evidence for a person who reads the test.
func english(lines []locksteward.Message) string {
	var out strings.Builder
	for _, l := range lines {
		out.WriteString(catalogue.Text("en", l) + "\n")
	}
	return out.String()
}

// judgeRound fails if a deadlock that is reported is none.
func (w *world) judgeRound(f locksteward.Finding, now []edge) {
	var members [][]string
	for _, line := range f.Evidence {
		if m := memberLine.FindStringSubmatch(catalogue.Text("en", line)); m != nil {
			members = append(members, m[1:])
		}
	}
	bad := func(why string) {
		w.fail("%s: %s wait/cycle on %q, but %s:\n%s", w.now.Sub(w.began), f.Status, f.Key, why, english(f.Evidence))
	}
	if len(members) == 0 {
		bad("it names nobody")
	}
	inferred := false
	for i, m := range members {
		next := members[(i+1)%len(members)]
		at := slices.IndexFunc(now, func(e edge) bool { return e.from == m[0] && e.key == m[2] && e.to == next[0] && next[1] == m[2] })
		if at < 0 {
			bad("session " + m[0] + " does not wait for " + next[0] + " at " + m[2])
		}
		inferred = inferred || now[at].inferred
		if f.Status == locksteward.StatusFiring && !f.FiredAt.Before(w.now) && w.truth.edges[now[at]] < 2 {
			bad("the wait of session " + m[0] + " was read only once")
		}
	}
	want := locksteward.SeverityCritical
	if inferred {
		want = locksteward.SeverityWarning
	}
	if f.Severity != want {
		bad("it is " + f.Severity.String() + ", want " + want.String())
	}
}

// judgeDue fails if the locks of a round that was read once are not to be read
// again soon.
func (w *world) judgeDue(knot []string, now []edge) {
	var keys []string
	for _, e := range now {
		if slices.Contains(knot, e.from) && slices.Contains(knot, e.to) {
			keys = append(keys, e.key)
		}
	}
	if len(keys) != len(knot) {
		return // several rounds, of which one is notified
	}
	for _, key := range keys {
		due := slices.ContainsFunc(w.agent.due(), func(l locksteward.Lock) bool { return l.Key == key })
		if !due {
			w.fail("%s: sessions %q wait for each other, and %q is not due to be read again", w.now.Sub(w.began), knot, key)
		}
	}
}
