package exporter

// goneKept bounds how many targets, receivers, and classes of a target are remembered
// that are gone: names may come from a directory and never come back.
const goneKept = 256

// gone remembers what was counted under names that are shown no longer, so that the
// counters of one that comes back go on: to Prometheus a counter that falls is a
// process that began anew. The zero value is empty.
type gone[V any] struct {
	of    map[string]V
	names []string // the longest gone first
}

// put remembers v, and returns the name that is forgotten for it; "" for none.
func (g *gone[V]) put(name string, v V) (forgotten string) {
	if g.of == nil {
		g.of = map[string]V{}
	}
	g.take(name)
	if len(g.names) >= goneKept {
		forgotten = g.names[0]
		g.take(forgotten)
	}
	g.of[name] = v
	g.names = append(g.names, name)
	return forgotten
}

// take returns what is remembered of a name, which is there again.
func (g *gone[V]) take(name string) (v V, ok bool) {
	if v, ok = g.of[name]; !ok {
		return v, false
	}
	delete(g.of, name)
	for i, n := range g.names {
		if n == name {
			g.names = append(g.names[:i:i], g.names[i+1:]...)
			break
		}
	}
	return v, true
}

// counters are what only grows of a target.
type counters struct {
	keys      float64 // that sweeps were given
	throttled map[string]float64
	watched   Watch // Blind and Missed alone
	tallies   map[string]*tally
}

// counters are those of the target as they are now. The target is used no longer.
func (t *target) counters() counters {
	c := counters{keys: t.sweep.keys, throttled: t.throttled, watched: t.watchedBefore, tallies: t.tallies}
	if t.watch != nil {
		c.watched.Blind += t.watch.Blind
		c.watched.Missed += t.watch.Missed
	}
	return c
}

// resume goes on with counters from when the target was here before.
func (t *target) resume(c counters) {
	t.sweep.keys, t.throttled, t.watchedBefore, t.tallies = c.keys, c.throttled, c.watched, c.tallies
}
