package exporter

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// building makes the metrics of a snapshot. Most series are as they were in the
// snapshot before: those are not made anew.
type building struct {
	descs  *[metricCount]*prometheus.Desc
	out    []prometheus.Metric
	before map[seriesID]valued
	now    map[seriesID]valued
}

// seriesID names a series; no metric has more labels.
type seriesID struct {
	metric metricID
	labels [5]string
}

// valued is a series with its value.
type valued struct {
	value  float64
	metric prometheus.Metric
}

func (b *building) series(id metricID, value float64, labels ...string) {
	name := seriesID{metric: id}
	for i := range labels {
		labels[i] = labelValue(labels[i])
	}
	copy(name.labels[:], labels)
	s, ok := b.before[name]
	if !ok || s.value != value {
		s = valued{value, b.newSeries(id, value, labels)}
	}
	b.now[name] = s
	b.out = append(b.out, s.metric)
}

func (b *building) newSeries(id metricID, value float64, labels []string) prometheus.Metric {
	kind := prometheus.GaugeValue
	if table[id].Type == Counter {
		kind = prometheus.CounterValue
	}
	m, err := prometheus.NewConstMetric(b.descs[id], kind, value, labels...)
	if err != nil {
		return prometheus.NewInvalidMetric(b.descs[id], err) // the scrape will say so
	}
	return m
}

// live adds a metric that changes on its own.
func (b *building) live(m prometheus.Metric) { b.out = append(b.out, m) }

// labelValue makes a name valid as the value of a label.
func labelValue(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func truth(ok bool) float64 {
	if ok {
		return 1
	}
	return 0
}

// emitGlobal gives what belongs to no class.
func (e *Exporter) emitGlobal(s *building) {
	s.series(buildInfo, 1, e.build.Version, e.build.Revision, e.build.GoVersion)
	if e.reload != nil {
		s.series(configLastReload, truth(*e.reload))
	}
	if e.consoleURL != "" {
		s.series(consoleInfo, 1, e.consoleURL)
	}
	if e.replicas > 0 {
		s.series(replicas, float64(e.replicas))
	}
	for _, state := range slices.Sorted(maps.Keys(e.requests)) {
		s.series(releaseRequests, float64(e.requests[state]), string(state))
	}
	e.emitReceivers(s)
	e.emitHeart(s)
	e.emitCredentials(s)
	e.emitSources(s)
	e.emitStore(s)
	for _, name := range e.targetNames() {
		e.targets[name].emit(s)
	}
	e.emitWorst(s)
}

// emit gives what belongs to the target as a whole.
func (t *target) emit(s *building) {
	if t.release != nil {
		s.series(releaseEnabled, truth(*t.release), t.name)
	}
	if t.leader != nil {
		s.series(leader, truth(t.leader.is), t.name)
	}
	if t.unsaved != nil {
		s.series(findingsUnsaved, float64(*t.unsaved), t.name)
	}
	for _, reason := range slices.Sorted(maps.Keys(t.throttled)) {
		s.series(budgetThrottled, t.throttled[reason], t.name, reason)
	}
	if t.pace > 0 {
		s.series(paceShare, t.pace, t.name)
	}
	s.series(budgetPaused, truth(t.paused), t.name)
	for _, command := range t.refused {
		s.series(commandRefused, 1, t.name, command)
	}
	t.emitWatch(s)
	t.emitFindings(s, "")
	if t.sweep.attempted {
		s.series(sweepDuration, t.sweep.duration.Seconds(), t.name)
		s.series(sweepComplete, truth(t.sweep.complete), t.name)
		s.series(sweepKeys, t.sweep.keys, t.name)
		if !t.sweep.lastSuccess.IsZero() {
			s.series(sweepLastSuccess, float64(t.sweep.lastSuccess.UnixMilli())/1000, t.name)
		}
		if !t.sweep.away {
			s.series(lockCandidates, float64(t.sweep.candidates), t.name)
		}
	}
	if t.state != nil {
		if source := t.state.Target.Source; source != "" {
			s.series(targetInfo, 1, t.name, source)
		}
		s.series(targetUp, truth(t.state.Up), t.name)
		if t.state.Up {
			for _, n := range t.nodes() {
				t.emitNode(s, n)
			}
		}
	}
}

// nodes are the servers of the target, each once.
func (t *target) nodes() []locksteward.NodeState {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(t.state.Nodes), func(n locksteward.NodeState) bool {
		addr := labelValue(n.Addr)
		again := seen[addr]
		seen[addr] = true
		return again
	})
}

func (t *target) emitNode(s *building, n locksteward.NodeState) {
	figures := []struct {
		id    metricID
		value float64
	}{
		{redisConnectedClients, float64(n.ConnectedClients)},
		{redisMaxClients, float64(n.MaxClients)},
		{redisMemoryUsed, float64(n.MemoryUsed)},
		{redisMemoryMax, float64(n.MemoryMax)},
		{redisEvictedKeys, float64(n.EvictedKeys)},
	}
	for _, f := range figures {
		if f.value >= 0 {
			s.series(f.id, f.value, t.name, n.Addr)
		}
	}
	if n.CPUSys >= 0 {
		s.series(redisCPU, n.CPUSys, t.name, n.Addr, "system")
	}
	if n.CPUUser >= 0 {
		s.series(redisCPU, n.CPUUser, t.name, n.Addr, "user")
	}
}

// emitClass gives everything of one configured class.
func (e *Exporter) emitClass(s *building, c class.Class) {
	s.series(classInfo, 1, c.Name, c.Team, c.RunbookURL)
	if matched, ok := e.matchedSoFar(c.Name); ok && len(c.Match) > 0 {
		s.series(classMatched, truth(matched), c.Name)
	}
	for _, name := range e.targetNames() {
		t := e.targets[name]
		t.emitFindings(s, c.Name)
		if g := t.gauges[c.Name]; g != nil {
			t.emitGauges(s, c.Name, g)
		}
		t.emitTally(s, c.Name)
		t.emitClassWatch(s, c.Name)
	}
}

// emitUnknown gives, under the name of Other, the sum of the classes that the
// configuration does not have: a reload took them out, or only processes name them.
func (e *Exporter) emitUnknown(s *building) {
	for _, name := range e.targetNames() {
		t := e.targets[name]
		gauges := lockGauges{libraries: map[string]int{}}
		for class, g := range t.gauges {
			if !e.known(class) {
				gauges.merge(g)
			}
		}
		firing := map[findingID]int{}
		for class, findings := range t.findings {
			if class == "" || e.known(class) {
				continue // "" are the findings of the target itself
			}
			for id, n := range findings {
				firing[id] += n
			}
		}
		if len(gauges.libraries) > 0 {
			t.emitGauges(s, Other, &gauges)
		}
		emitFirings(s, t.name, Other, firing)
		if t.tallies[Other] != nil {
			t.emitTally(s, Other)
		}
	}
}

func (t *target) emitGauges(s *building, class string, g *lockGauges) {
	for _, library := range slices.Sorted(maps.Keys(g.libraries)) {
		s.series(locks, float64(g.libraries[library]), t.name, class, library)
	}
	s.series(locksWithoutTTL, float64(g.withoutTTL), t.name, class)
	if g.hasExpect {
		s.series(locksOverdue, float64(g.overdue), t.name, class)
	}
	if g.hasAge {
		s.series(lockLongestHold, toMillis(g.longest), t.name, class)
	}
	if g.hasWaiters {
		s.series(lockWaiters, float64(g.waiters), t.name, class)
	}
}

// emitTally gives the counters of a class, from the first sweep on: a counter
// that begins at 1 hides its first event from rate and increase.
func (t *target) emitTally(s *building, class string) {
	c := t.tallies[class]
	if c == nil {
		c = &tally{}
	}
	n := c.total()
	if t.pass > 0 {
		s.series(lockAcquires, n.acquires, t.name, class)
		s.series(lockRenewals, n.renewals, t.name, class)
		s.series(locksLost, n.lost, t.name, class)
		s.series(locksExpired, c.expired, t.name, class)
	}
	if c.claimed {
		s.series(lockAcquireFailures, n.failures, t.name, class)
		s.series(lockRenewalFailures, n.renewFailures, t.name, class)
	}
	for _, outcome := range slices.Sorted(maps.Keys(c.releases)) {
		s.series(releases, c.releases[outcome], t.name, class, outcome)
	}
	if c.hold != nil {
		s.live(c.hold)
	}
}

// emitFindings gives the firing findings of one class.
func (t *target) emitFindings(s *building, class string) {
	emitFirings(s, t.name, class, t.findings[class])
}

func emitFirings(s *building, target, class string, firing map[findingID]int) {
	for id, n := range firing {
		s.series(findings, float64(n), target, class, id.rule, id.severity, id.risk)
	}
}

// toMillis is an age as a value that is no longer than it is exact.
func toMillis(seconds float32) float64 { return math.Round(float64(seconds)*1000) / 1000 }
