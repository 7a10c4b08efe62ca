package exporter

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
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
	// holds change on their own, beside the snapshot.
	holds *prometheus.HistogramVec

	// snapshot is what a scrape sends; its list is never changed.
	snapshot atomic.Pointer[[]prometheus.Metric]

	mu        sync.Mutex
	dirty     bool                // the snapshot is behind: the next scrape publishes
	built     map[seriesID]valued // what it has
	classes   []class.Class       // in the order of the configuration
	classByID map[string]class.Class
	targets   map[string]*target
	names     []string // of targets, sorted
	left      gone[counters]
	requests  map[locksteward.RequestState]int
	replicas  int // 0: not shown
	store     *Store
	receivers map[string]*receiverCounts
	// matched are the configured classes of which a lock was seen since the start.
	matched map[string]bool
	leftOut gone[*receiverCounts] // of receivers
	closed  bool                  // receivers has all that are configured
	reload  *bool                 // nil before SetReload
	// consoleURL is where people reach the console; empty: not shown.
	consoleURL string
	heart      heart
	ending     []Credential // certificates, see SetCredentials
	sources    []TargetSource
	refused    []Credential
}

// New returns an Exporter that knows the classes of the configuration and no
// target yet.
func New(cfg Config, classes *class.Set, build BuildInfo) (*Exporter, error) {
	cfg = cfg.withDefaults()
	if err := cfg.bounds(); err != nil {
		return nil, err
	}
	build.GoVersion = cmp.Or(build.GoVersion, runtime.Version())
	e := &Exporter{
		cfg:       cfg,
		build:     build,
		registry:  prometheus.NewRegistry(),
		targets:   map[string]*target{},
		receivers: map[string]*receiverCounts{},
		matched:   map[string]bool{},
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
	err := errors.Join(
		e.registry.Register(collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(liveHeap))),
		e.registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})),
	)
	if err != nil {
		return nil, fmt.Errorf("register runtime metrics: %w", err)
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
		for name := range t.tallies { // of others nothing is shown until they are back
			if name != Other && !e.known(name) && len(t.tallies) > len(e.classes)+goneKept {
				delete(t.tallies, name)
				e.holds.DeleteLabelValues(t.name, labelValue(name))
			}
		}
	}
}

// ClassMatched reports whether a lock of the class was seen since the start. It is not ok
// while that is not known: before each target was swept in full.
func (e *Exporter) ClassMatched(class string) (matched, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.matchedSoFar(class)
}

// matchedSoFar is [Exporter.ClassMatched]; the caller holds mu.
func (e *Exporter) matchedSoFar(class string) (matched, ok bool) {
	if e.matched[class] {
		return true, true
	}
	for _, t := range e.targets {
		if !t.whole {
			return false, false
		}
	}
	return false, len(e.targets) > 0
}

func (e *Exporter) known(class string) bool {
	_, ok := e.classByID[class]
	return ok
}

// expect is how long a hold of the class may last, 0 if it does not say.
func (e *Exporter) expect(class string) time.Duration { return e.classByID[class].Expect }

// shown is the class that events of class count into: itself if it is configured, else Other.
func (e *Exporter) shown(class string) string {
	if !e.known(class) {
		return Other
	}
	return class
}

// target returns the state of a target, made at its first mention.
func (e *Exporter) target(name string) *target {
	t, ok := e.targets[name]
	if !ok {
		t = newTarget(name, e.cfg)
		if c, before := e.left.take(name); before {
			t.resume(c)
		}
		e.targets[name] = t
		e.names = slices.Sorted(maps.Keys(e.targets))
	}
	return t
}

// targetNames are the targets in order.
func (e *Exporter) targetNames() []string { return e.names }

func (e *Exporter) newHold(target, class string) prometheus.Histogram {
	h, _ := e.holds.WithLabelValues(target, labelValue(class)).(prometheus.Histogram)
	return h
}

// publish builds the snapshot of the state as it is. The caller holds mu.
func (e *Exporter) publish() {
	b := building{
		descs: &e.descs, out: make([]prometheus.Metric, 0, len(e.built)),
		before: e.built, now: make(map[seriesID]valued, len(e.built)),
	}
	e.emitGlobal(&b)
	for _, c := range e.classes {
		e.emitClass(&b, c)
	}
	e.emitUnknown(&b)
	e.built = b.now
	e.snapshot.Store(&b.out)
	e.dirty = false
}

// collector gives the registry the last snapshot.
type collector Exporter

// Describe sends what Collect may send.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for id, d := range c.descs {
		if metricID(id) != lockHold {
			ch <- d
		}
	}
	c.holds.Describe(ch)
}

// Collect sends the last snapshot.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	(*Exporter)(c).refresh()
	for _, m := range *c.snapshot.Load() {
		ch <- m
	}
}

var _ prometheus.Collector = (*collector)(nil)

// liveHeap is what the last collection left: it grows only if more is kept, where the
// other metrics of the heap rise until the next collection.
var liveHeap = collectors.GoRuntimeMetricsRule{Matcher: regexp.MustCompile(`^/gc/heap/live:bytes$`)}
