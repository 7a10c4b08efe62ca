package exporter

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// BuildInfo is the version of the program, for locksteward_build_info.
type BuildInfo struct {
	Version   string
	Revision  string
	GoVersion string // "": that of the running program
}

// Exporter holds the state of all targets as series, and the registry that
// serves them. It is safe for concurrent use.
type Exporter struct {
	cfg      Config
	build    BuildInfo
	registry *prometheus.Registry
	descs    [metricCount]*prometheus.Desc
	// The three that change on their own, so that counting one event does not
	// publish all series again.
	holds     *prometheus.HistogramVec
	throttled *prometheus.CounterVec
	delivered *prometheus.CounterVec
	// baseline is how many series the runtime, the process and the handler have.
	baseline int

	// snapshot is what a scrape sends; its list is never changed.
	snapshot atomic.Pointer[[]prometheus.Metric]

	mu         sync.Mutex
	classes    []class.Class // in the order of the configuration
	classByID  map[string]class.Class
	folded     map[string]bool
	targets    map[string]*target
	requests   map[locksteward.RequestState]int
	deliveries map[deliveryID]prometheus.Counter
	outbox     []Backlog
	reload     *bool // nil before SetReload
}

// deliveryID is receiver, outcome and reason.
type deliveryID [3]string

// New returns an Exporter that knows the classes of the configuration and no
// target yet.
func New(cfg Config, classes *class.Set, build BuildInfo) (*Exporter, error) {
	cfg = cfg.withDefaults()
	if cfg.MaxSeries < MinMaxSeries {
		return nil, fmt.Errorf("max_series: got %d, write at least %d", cfg.MaxSeries, MinMaxSeries)
	}
	build.GoVersion = cmp.Or(build.GoVersion, runtime.Version())
	e := &Exporter{
		cfg:        cfg,
		build:      build,
		registry:   prometheus.NewRegistry(),
		folded:     map[string]bool{},
		targets:    map[string]*target{},
		deliveries: map[deliveryID]prometheus.Counter{},
	}
	for id, m := range table {
		e.descs[id] = prometheus.NewDesc(m.Name, m.Help, m.Labels, nil)
	}
	e.holds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:                           table[lockHold].Name,
		Help:                           table[lockHold].Help,
		Buckets:                        holdBuckets,
		NativeHistogramBucketFactor:    1.1,
		NativeHistogramMaxBucketNumber: 160,
	}, table[lockHold].Labels)
	e.throttled = newCounterVec(budgetThrottled)
	e.delivered = newCounterVec(deliveries)
	err := errors.Join(
		e.registry.Register(collectors.NewGoCollector()),
		e.registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})),
	)
	if err != nil {
		return nil, fmt.Errorf("register runtime metrics: %w", err)
	}
	if e.baseline, err = baseline(e.registry); err != nil {
		return nil, err
	}
	if err := e.registry.Register((*collector)(e)); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.setClasses(classes)
	e.publish()
	return e, nil
}

// Gatherer gives the metrics, for a handler or a test.
func (e *Exporter) Gatherer() prometheus.Gatherer { return e.registry }

// SetClasses takes the classes of a new configuration. Series of classes that
// are gone vanish.
func (e *Exporter) SetClasses(classes *class.Set) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.setClasses(classes)
	e.publish()
}

func (e *Exporter) setClasses(classes *class.Set) {
	e.classes = classes.All()
	e.classByID = make(map[string]class.Class, len(e.classes)+1)
	for _, c := range e.classes {
		e.classByID[c.Name] = c
	}
	if c, ok := classes.Get(class.Default); ok && !e.known(class.Default) {
		e.classes = append(slices.Clone(e.classes), c)
		e.classByID[class.Default] = c
	}
	for _, t := range e.targets {
		for name := range t.tallies {
			if name != Other && !e.known(name) {
				delete(t.tallies, name)
				e.holds.DeleteLabelValues(t.name, labelValue(name))
			}
		}
	}
}

func (e *Exporter) known(class string) bool {
	_, ok := e.classByID[class]
	return ok
}

// expect is how long a hold of the class may last, 0 if it does not say.
func (e *Exporter) expect(class string) time.Duration { return e.classByID[class].Expect }

// shown is the class that events of class count into now.
func (e *Exporter) shown(class string) string {
	if e.folded[class] || !e.known(class) {
		return Other
	}
	return class
}

// target returns the state of a target, made at its first mention.
func (e *Exporter) target(name string) *target {
	t, ok := e.targets[name]
	if !ok {
		t = newTarget(name)
		e.targets[name] = t
	}
	return t
}

func (e *Exporter) targetNames() []string { return slices.Sorted(maps.Keys(e.targets)) }

func (e *Exporter) sortedDeliveries() []deliveryID {
	return slices.SortedFunc(maps.Keys(e.deliveries), func(a, b deliveryID) int {
		return slices.Compare(a[:], b[:])
	})
}

func (e *Exporter) newHold(target, class string) prometheus.Histogram {
	h, _ := e.holds.WithLabelValues(target, labelValue(class)).(prometheus.Histogram)
	return h
}

func newCounterVec(id metricID) *prometheus.CounterVec {
	m := table[id]
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.Labels)
}

// publish builds the snapshot of the state as it is. The caller holds mu.
func (e *Exporter) publish() {
	kept, folded := e.fold()
	clear(e.folded)
	for _, c := range folded {
		e.folded[c.Name] = true
	}
	b := building{descs: &e.descs}
	e.emitGlobal(&b)
	for _, c := range kept {
		e.emitClass(&b, c)
	}
	e.emitOther(&b, folded)
	e.snapshot.Store(&b.out)
}

// collector gives the registry the last snapshot.
type collector Exporter

// Describe sends what Collect may send.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for id, d := range c.descs {
		switch metricID(id) {
		case lockHold, budgetThrottled, deliveries: // by their own
		default:
			ch <- d
		}
	}
	c.holds.Describe(ch)
	c.throttled.Describe(ch)
	c.delivered.Describe(ch)
}

// Collect sends the last snapshot.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	(*Exporter)(c).refresh()
	for _, m := range *c.snapshot.Load() {
		ch <- m
	}
}

var _ prometheus.Collector = (*collector)(nil)

// baselineSpare are the series of the HTTP handler, and some that the runtime
// may add later.
const baselineSpare = 10

// baseline counts the series that are there without any of ours.
func baseline(g prometheus.Gatherer) (int, error) {
	families, err := g.Gather()
	if err != nil {
		return 0, fmt.Errorf("gather runtime metrics: %w", err)
	}
	n := baselineSpare
	for _, f := range families {
		for _, m := range f.GetMetric() {
			switch {
			case m.GetSummary() != nil:
				n += len(m.GetSummary().GetQuantile()) + 2
			case m.GetHistogram() != nil:
				n += len(m.GetHistogram().GetBucket()) + 3
			default:
				n++
			}
		}
	}
	return n, nil
}
