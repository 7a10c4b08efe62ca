package soak_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward/store"
)

const (
	// warm is the part of a life, and settle the time after an agent got or lost the
	// target, in which it may grow: it reads all locks.
	warm   = 2 * time.Minute
	settle = time.Minute
	// enough is how many samples a stretch needs.
	enough = 6
	// lasting is how long a line must be for memory to be judged by it: within minutes
	// it follows the work, a failover most of all.
	lasting = 5 * time.Minute
	// What a life may grow by after that, along the line through its samples.
	mayGrow      = 0.15    // of the mean of its memory
	mayGrowBytes = 8 << 20 // or this, if it is more
	mayGrowCount = 8       // goroutines, and open files
)

// stretch is a part of an agent's life in which it has the target throughout, or has
// it not, with what the lines through its samples rise by.
type stretch struct {
	agent string
	life  int
	leads bool
	// had says that it had the target before, for a stretch that counts, so that there
	// may be something left of it: code, stacks, pools. Who never had it, or for some
	// seconds only, says nothing of what is left.
	had bool

	from, to                     time.Duration
	samples                      int
	rss, live, goroutines, files line
}

// line is a straight line through samples: the least squares, and the least of them.
type line struct{ mean, grows, least float64 }

func through(at []time.Duration, v []float64) line {
	n, least := float64(len(v)), slices.Min(v)
	var sx, sy, sxx, sxy float64
	for i := range v {
		x := at[i].Seconds()
		sx, sy, sxx, sxy = sx+x, sy+v[i], sxx+x*x, sxy+x*v[i]
	}
	d := n*sxx - sx*sx
	if d == 0 {
		return line{mean: sy / n, least: least}
	}
	slope := (n*sxy - sx*sy) / d
	return line{sy / n, slope * (at[len(at)-1] - at[0]).Seconds(), least}
}

// stretches are those of all agents that have samples enough, in their order.
func stretches(list []sample) []stretch {
	type of struct {
		agent string
		life  int
	}
	born := map[of]time.Duration{}
	last := map[of]sample{}
	turned := map[of]time.Duration{}
	type part struct {
		had     bool
		samples []sample
	}
	parts := map[of][]part{}
	for _, s := range list {
		life := of{s.agent, s.life}
		before, known := last[life]
		if last[life] = s; !known {
			born[life] = s.at
		}
		if !known || before.leads != s.leads {
			turned[life] = s.at
			had := false
			if known {
				last := parts[life][len(parts[life])-1]
				had = last.had || before.leads && len(last.samples) >= enough
			}
			parts[life] = append(parts[life], part{had: had})
		}
		if s.at-born[life] < warm || s.at-turned[life] < settle && turned[life] > born[life] {
			continue
		}
		samples := &parts[life][len(parts[life])-1].samples
		*samples = append(*samples, s)
	}
	var out []stretch
	for life, parts := range parts {
		for _, p := range parts {
			if len(p.samples) >= enough {
				s := newStretch(life.agent, life.life, p.samples)
				s.had = p.had
				out = append(out, s)
			}
		}
	}
	slices.SortFunc(out, func(a, b stretch) int {
		return cmp.Or(cmp.Compare(a.agent, b.agent), cmp.Compare(a.life, b.life), cmp.Compare(a.from, b.from))
	})
	return out
}

func newStretch(agent string, life int, part []sample) stretch {
	var at []time.Duration
	var rss, live, goroutines, files []float64
	for _, s := range part {
		at = append(at, s.at)
		rss, live = append(rss, s.rss), append(live, s.live)
		goroutines, files = append(goroutines, s.goroutines), append(files, s.files)
	}
	return stretch{
		agent: agent, life: life, leads: part[0].leads, from: at[0], to: at[len(at)-1], samples: len(part),
		rss: through(at, rss), live: through(at, live), goroutines: through(at, goroutines), files: through(at, files),
	}
}

// drift says what an agent has more of each time it has the target, or each time it
// has lost it: the lines through the least that it had in each such stretch of one life.
// Whatever is kept for ever is part of that, and what a burst of work took is not.
func drift(list []stretch) (wrong []string) {
	type of struct {
		agent string
		life  int
		leads bool
	}
	alike := map[of][]stretch{}
	for _, s := range list {
		if !s.leads && !s.had {
			continue
		}
		k := of{s.agent, s.life, s.leads}
		alike[k] = append(alike[k], s)
	}
	for k, list := range alike {
		if len(list) < 2 {
			continue
		}
		over := stretch{agent: k.agent, life: k.life, leads: k.leads, from: list[0].from, to: list[len(list)-1].to}
		for into, of := range map[*line]func(stretch) line{
			&over.rss:        func(s stretch) line { return s.rss },
			&over.live:       func(s stretch) line { return s.live },
			&over.goroutines: func(s stretch) line { return s.goroutines },
			&over.files:      func(s stretch) line { return s.files },
		} {
			var at []time.Duration
			var least []float64
			for _, s := range list {
				at, least = append(at, s.from), append(least, of(s).least)
			}
			*into = through(at, least)
		}
		for _, w := range over.judge() {
			wrong = append(wrong, fmt.Sprintf("%s (from one stretch to the next)", w))
		}
	}
	slices.Sort(wrong)
	return wrong
}

// has is [stretch.leads] in the words of the report.
func (s stretch) has() string {
	switch {
	case s.leads:
		return "yes"
	case s.had:
		return "not any more"
	default:
		return "not yet"
	}
}

// judge says what is not flat.
func (s stretch) judge() (wrong []string) {
	bad := func(format string, args ...any) {
		state := "without the target"
		if s.leads {
			state = "with the target"
		}
		wrong = append(wrong, fmt.Sprintf("%s, life %d, %s, from %s to %s: ", s.agent, s.life, state, short(s.from), short(s.to))+fmt.Sprintf(format, args...))
	}
	memory := func(name string, l line) {
		if l.grows > max(l.mean*mayGrow, mayGrowBytes) {
			bad("%s grows by %.1f MB of %.1f", name, l.grows/1e6, l.mean/1e6)
		}
	}
	if s.to-s.from >= lasting {
		memory("live heap", s.live)
		memory("resident memory", s.rss)
	}
	count := func(name string, l line) {
		if l.grows > mayGrowCount {
			bad("%s grow by %.1f of %.1f", name, l.grows, l.mean)
		}
	}
	count("goroutines", s.goroutines)
	count("open files", s.files)
	return wrong
}

// verdict judges the run, and returns what is wrong with it.
func (r *run) verdict(ctx context.Context, st *store.Store) (wrong []string) {
	bad := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }

	r.broken.mu.Lock()
	defer r.broken.mu.Unlock()
	r.people.mu.Lock()
	broke := slices.Concat(r.broken.names, r.people.names)
	r.people.mu.Unlock()
	for _, key := range broke {
		reported := r.ear.Of("soak " + key)
		switch {
		case !slices.Contains(reported, "firing") || !slices.Contains(reported, "resolved"):
			r.lost++
			bad("lost: of %s was reported %v", key, reported)
		case reported[0] != "firing":
			r.reversed++
			bad("an end before its fire: of %s was reported %v", key, reported)
		}
	}
	if len(r.broken.names) == 0 {
		bad("no lock broke")
	}
	if r.people.released == 0 {
		bad("no lock was released")
	}
	robbed := r.people.taken(ctx)
	r.robbed = len(robbed)
	for _, key := range robbed {
		bad("%s is not the next holder's any more: it was released once too often", key)
	}

	if r.gone, r.goneNames = r.load.missing(ctx); r.gone > 0 {
		bad("%d locks are gone that nobody released: %s", r.gone, strings.Join(r.goneNames, ", "))
	}
	list, err := st.ListRequests(ctx, nil, "", -1)
	if err != nil {
		bad("requests: %v", err)
	}
	for _, q := range list {
		r.requests[string(q.State)]++
		if key := q.Evidence.Key; !slices.Contains(broke, key) {
			bad("request %s is about %s, which was not broken", q.ID, key)
		}
	}
	if _, err := st.Verify(ctx); err != nil {
		bad("the audit trail: %v", err)
	}

	for _, f := range r.faults {
		if !f.reported {
			bad("%s at %s: no blind time and no new sweep was notified of", f.kind, f.at.Round(time.Second))
		}
	}
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	if len(r.all.list) == 0 {
		bad("no samples")
	}
	for _, s := range r.all.list {
		r.missed = max(r.missed, s.missed)
		r.most = max(r.most, s.locks)
		r.delay = max(r.delay, time.Duration(s.delay*float64(time.Second)))
	}
	if r.most < float64(*locks) {
		bad("agents saw %.0f locks at most, of %d that stand", r.most, *locks)
	}
	for _, f := range r.all.fell {
		bad("the counter of blind time fell: %s", f)
	}
	if r.missed > 0 {
		bad("%v changes were missed outside of blind time", r.missed)
	}
	r.stretches = stretches(r.all.list)
	for _, s := range r.stretches {
		wrong = append(wrong, s.judge()...)
	}
	return append(wrong, drift(r.stretches)...)
}
