package soak_test

import (
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
	// enough is how many samples a line needs.
	enough = 12
	// What a life may grow by after that, along the line through its samples.
	mayGrow      = 0.15    // of the mean of its memory
	mayGrowBytes = 8 << 20 // or this, if it is more
	mayGrowCount = 8       // goroutines, and open files
)

// growth is what the line through a life's samples rises by.
type growth struct {
	agent                        string
	life                         int
	leads                        bool
	from, to                     time.Duration
	samples                      int
	rss, heap, goroutines, files line
}

// line is a straight line through samples: the least squares.
type line struct{ mean, grows float64 }

func through(at []time.Duration, v []float64) line {
	n := float64(len(v))
	var sx, sy, sxx, sxy float64
	for i := range v {
		x := at[i].Seconds()
		sx, sy, sxx, sxy = sx+x, sy+v[i], sxx+x*x, sxy+x*v[i]
	}
	d := n*sxx - sx*sx
	if d == 0 {
		return line{mean: sy / n}
	}
	slope := (n*sxy - sx*sy) / d
	return line{sy / n, slope * (at[len(at)-1] - at[0]).Seconds()}
}

// growths are the lines of each life, apart for when it has the target and when not.
func growths(list []sample) []growth {
	type of struct {
		agent string
		life  int
		leads bool
	}
	born := map[of]time.Duration{}
	turned := map[of]sample{}
	groups := map[of][]sample{}
	for _, s := range list {
		life := of{agent: s.agent, life: s.life}
		if _, ok := born[life]; !ok {
			born[life] = s.at
			turned[life] = s
		}
		if turned[life].leads != s.leads {
			turned[life] = s
		}
		if s.at-born[life] < warm || s.at-turned[life].at < settle {
			continue
		}
		k := of{s.agent, s.life, s.leads}
		groups[k] = append(groups[k], s)
	}
	var out []growth
	for k, g := range groups {
		if len(g) < enough {
			continue
		}
		var at []time.Duration
		var rss, heap, goroutines, files []float64
		for _, s := range g {
			at = append(at, s.at)
			rss, heap = append(rss, s.rss), append(heap, s.heap)
			goroutines, files = append(goroutines, s.goroutines), append(files, s.files)
		}
		out = append(out, growth{
			agent: k.agent, life: k.life, leads: k.leads, from: at[0], to: at[len(at)-1], samples: len(g),
			rss: through(at, rss), heap: through(at, heap), goroutines: through(at, goroutines), files: through(at, files),
		})
	}
	slices.SortFunc(out, func(a, b growth) int {
		if c := strings.Compare(a.agent, b.agent); c != 0 {
			return c
		}
		return 2*(a.life-b.life) + int(a.from-b.from)/int(time.Second)
	})
	return out
}

// judge says what is not flat.
func (g growth) judge() (wrong []string) {
	for _, m := range []struct {
		name string
		line
	}{{"resident memory", g.rss}, {"heap", g.heap}} {
		if m.grows > max(m.mean*mayGrow, mayGrowBytes) {
			wrong = append(wrong, fmt.Sprintf("%s grows by %.1f MB of %.1f", m.name, m.grows/1e6, m.mean/1e6))
		}
	}
	for _, m := range []struct {
		name string
		line
	}{{"goroutines", g.goroutines}, {"open files", g.files}} {
		if m.grows > mayGrowCount {
			wrong = append(wrong, fmt.Sprintf("%s grow by %.1f of %.1f", m.name, m.grows, m.mean))
		}
	}
	return wrong
}

// verdict judges the run, and returns what is wrong with it.
func (r *run) verdict(ctx context.Context, st *store.Store) (wrong []string) {
	bad := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }

	r.broken.mu.Lock()
	defer r.broken.mu.Unlock()
	r.ear.mu.Lock()
	defer r.ear.mu.Unlock()
	for _, key := range r.broken.names {
		told := r.ear.told[key]
		switch {
		case !slices.Contains(told, "firing") || !slices.Contains(told, "resolved"):
			r.lost++
			bad("lost: of %s was told %v", key, told)
		case told[0] != "firing":
			r.reversed++
			bad("an end before its fire: of %s was told %v", key, told)
		}
	}
	if len(r.broken.names) == 0 {
		bad("no lock broke")
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
		if key := q.Evidence.Key; !slices.Contains(r.broken.names, key) {
			bad("request %s is about %s, which was not broken", q.ID, key)
		}
	}
	if _, err := st.Verify(ctx); err != nil {
		bad("the audit trail: %v", err)
	}

	for _, f := range r.faults {
		if !f.told {
			bad("%s at %s: no blind time and no new sweep was told of", f.kind, f.at.Round(time.Second))
		}
	}
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	if len(r.all.list) == 0 {
		bad("no samples")
	}
	for _, s := range r.all.list {
		r.missed = max(r.missed, s.missed)
		r.delay = max(r.delay, time.Duration(s.delay*float64(time.Second)))
	}
	for _, f := range r.all.fell {
		bad("the counter of blind time fell: %s", f)
	}
	if r.missed > 0 {
		bad("%v changes were missed outside of blind time", r.missed)
	}
	r.growths = growths(r.all.list)
	for _, g := range r.growths {
		for _, w := range g.judge() {
			bad("%s, life %d: %s between %s and %s", g.agent, g.life, w, g.from.Round(time.Second), g.to.Round(time.Second))
		}
	}
	return wrong
}
