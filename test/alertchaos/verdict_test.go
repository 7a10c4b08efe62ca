package alertchaos_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// verdict is what a run came to, for one receiver.
type verdict struct {
	events int // committed transitions that it was to be notified of
	// lost never arrived; suppressed are fires that were held back with their resolves.
	lost, suppressed []string
	// early are resolves that arrived before their fires, and order those that came
	// before one that was committed earlier.
	early, order []string
	// otherID are transitions that came under several webhook-ids, otherBytes messages
	// that came with several contents.
	otherID, otherBytes []string
	// copies are deliveries that were accepted before; unwritten are transitions that
	// were reported and are in no store.
	copies    int
	unwritten []string
}

// judge compares what a receiver got, in its order, with what was committed.
func judge(receiver string, all map[string]committed, got []delivery) verdict {
	var v verdict
	first := map[string]int{} // by event: when it was accepted first
	ids, sums, accepted := map[string]string{}, map[string][32]byte{}, map[string]bool{}
	firing := map[string]bool{} // by fingerprint
	for at, d := range got {
		if sum, known := sums[d.id]; known && sum != d.sum {
			v.otherBytes = append(v.otherBytes, d.id)
		}
		sums[d.id] = d.sum
		if d.accepted && accepted[d.id] {
			v.copies++
		}
		for _, t := range d.reported {
			if id, known := ids[t.event]; known && id != d.id {
				v.otherID = append(v.otherID, fmt.Sprintf("%s %s of %s: %s, %s", t.event, t.status, t.key, id, d.id))
			}
			ids[t.event] = d.id
			if !d.accepted {
				continue
			}
			if _, known := first[t.event]; known {
				continue
			}
			first[t.event] = at
			if _, known := all[t.event]; !known {
				v.unwritten = append(v.unwritten, t.event+" "+t.status+" of "+t.key)
			}
			if t.status == "resolved" && !firing[t.fingerprint] {
				v.early = append(v.early, t.event+" of "+t.key)
			}
			firing[t.fingerprint] = t.status == "firing"
		}
		accepted[d.id] = accepted[d.id] || d.accepted
	}
	v.compare(receiver, all, first)
	return v
}

// compare finds what of the committed never arrived, and what came out of order.
func (v *verdict) compare(receiver string, all map[string]committed, first map[string]int) {
	byFinding := map[string][]string{}
	for id, c := range all {
		if slices.Contains(strings.Split(c.receivers, "\n"), receiver) {
			v.events++
			byFinding[c.fingerprint] = append(byFinding[c.fingerprint], id)
		}
	}
	for _, ids := range byFinding {
		slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(all[a].seq, all[b].seq) })
		last := -1
		for i := 0; i < len(ids); i++ {
			at, arrived := first[ids[i]]
			switch {
			case arrived && at < last:
				v.order = append(v.order, ids[i])
			case arrived:
				last = at
			// A fire that was held back (its target was not reached yet) until it was over.
			case all[ids[i]].status == "firing" && i+1 < len(ids) && all[ids[i+1]].status == "resolved" && !has(first, ids[i+1]):
				v.suppressed = append(v.suppressed, ids[i], ids[i+1])
				i++
			default:
				v.lost = append(v.lost, ids[i]+" "+all[ids[i]].status)
			}
		}
	}
}

func has(m map[string]int, key string) bool {
	_, ok := m[key]
	return ok
}

// latest is what a receiver knows of each lock after all that it accepted: whether
// it is broken.
func latest(got []delivery) map[lockRule]bool {
	out := map[lockRule]bool{}
	for l, t := range last(got) {
		out[l] = t.status == "firing"
	}
	return out
}

// last is what a receiver was last notified of, by lock.
func last(got []delivery) map[lockRule]reported {
	out, seen := map[lockRule]reported{}, map[string]bool{}
	for _, d := range got {
		for _, t := range d.reported {
			if d.accepted && !seen[t.event] {
				seen[t.event] = true
				out[lockRule{t.key, t.rule}] = t
			}
		}
	}
	return out
}

// differs are the locks of which a receiver does not know what is so.
func differs(truth, known map[lockRule]bool) []string {
	var out []string
	all := maps.Clone(known)
	maps.Copy(all, truth)
	for l := range all {
		if truth[l] != known[l] {
			out = append(out, fmt.Sprintf("%s %s: is %t, reported %t", l.rule, l.key, truth[l], known[l]))
		}
	}
	slices.Sort(out)
	return out
}

// The verdict finds each kind of wrong that a run must not show.
func TestVerdict(t *testing.T) {
	t.Parallel()
	all := map[string]committed{
		"f1": {1, "A", "firing", "ops"}, "r1": {2, "A", "resolved", "ops"},
		"f2": {3, "B", "firing", "ops\nchat"}, "r2": {4, "B", "resolved", "ops"},
		"f3": {5, "C", "firing", "chat"},
	}
	msg := func(id, sum string, accepted bool, events ...string) delivery {
		d := delivery{id: id, accepted: accepted}
		copy(d.sum[:], sum)
		for _, e := range events {
			d.reported = append(d.reported, reported{event: e, fingerprint: all[e].fingerprint, status: all[e].status})
		}
		return d
	}
	for name, tc := range map[string]struct {
		got  []delivery
		want string
	}{
		"all well":                 {[]delivery{msg("1", "x", true, "f1"), msg("2", "y", true, "r1", "f2", "r2")}, "4 events"},
		"copies":                   {[]delivery{msg("1", "x", false, "f1", "r1"), msg("1", "x", true, "f1", "r1"), msg("1", "x", true, "f1", "r1"), msg("2", "y", true, "f2", "r2")}, "4 events, 1 copies"},
		"a lost resolve":           {[]delivery{msg("1", "x", true, "f1"), msg("2", "y", true, "f2", "r2")}, "4 events, 1 lost"},
		"a lost fire":              {[]delivery{msg("1", "x", true, "f1", "r1"), msg("2", "y", true, "r2")}, "4 events, 1 lost, 1 early"},
		"both held back":           {[]delivery{msg("1", "x", true, "f1", "r1")}, "4 events, 2 suppressed"},
		"never accepted":           {[]delivery{msg("1", "x", true, "f1"), msg("2", "y", false, "r1"), msg("3", "z", true, "f2", "r2")}, "4 events, 1 lost"},
		"out of order":             {[]delivery{msg("2", "y", true, "r1"), msg("1", "x", true, "f1"), msg("3", "z", true, "f2", "r2")}, "4 events, 1 early, 1 order"},
		"under two ids":            {[]delivery{msg("1", "x", true, "f1", "r1"), msg("2", "y", true, "f1", "f2", "r2")}, "4 events, 1 otherID"},
		"with other bytes":         {[]delivery{msg("1", "x", false, "f1", "r1"), msg("1", "y", true, "f1", "r1"), msg("2", "y", true, "f2", "r2")}, "4 events, 1 otherBytes"},
		"reported and not written": {[]delivery{msg("1", "x", true, "f1", "r1", "f2", "r2", "f9")}, "4 events, 1 unwritten"},
	} {
		if got := judge("ops", all, tc.got).String(); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func (v verdict) String() string {
	var out strings.Builder
	out.WriteString(fmt.Sprintf("%d events", v.events))
	for _, part := range []struct {
		n    int
		name string
	}{
		{len(v.lost), "lost"},
		{len(v.suppressed), "suppressed"},
		{len(v.early), "early"},
		{len(v.order), "order"},
		{len(v.otherID), "otherID"},
		{len(v.otherBytes), "otherBytes"},
		{v.copies, "copies"},
		{len(v.unwritten), "unwritten"},
	} {
		if part.n > 0 {
			out.WriteString(fmt.Sprintf(", %d %s", part.n, part.name))
		}
	}
	return out.String()
}
