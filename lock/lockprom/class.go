package lockprom

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
)

// Classes that no caller chose.
const (
	// DefaultClass is the class of locks without a class, as in the agent's metrics.
	DefaultClass = "default"
	// OtherClass is the class of those beyond the limit.
	OtherClass = "_other"
)

// maxClassBytes is the longest class shown; the rest is cut.
const maxClassBytes = 128

// Results of an acquire, outcomes of a hold and of a cleanup: label values in
// the order of their constants.
var (
	resultNames  = [...]string{"acquired", "held", "failed"}
	outcomeNames = [...]string{"released", "lost", "unknown"}
	cleanupNames = [...]string{"cleaned", "failed"}
)

const (
	resultAcquired = iota
	resultHeld
	resultFailed
)

const (
	outcomeReleased = iota
	outcomeLost
	outcomeUnknown
)

const (
	cleanupDone = iota
	cleanupFailed
)

// series are all series of one class, found once.
type series struct {
	attempts, acquired, contended, reentered, renewals, late prometheus.Counter

	held          prometheus.Gauge
	failures      [reasonCount]prometheus.Counter
	renewFailures [reasonCount]prometheus.Counter
	wait          [len(resultNames)]timing
	hold          [len(outcomeNames)]timing
	releases      [len(outcomeNames)]prometheus.Counter
	lost          [len(lossNames)]prometheus.Counter
	cleanups      [len(cleanupNames)]prometheus.Counter
}

func newSeries(v *vectors, class string) *series {
	of := func(id metricID) prometheus.Counter { return v.counters[id].WithLabelValues(class) }
	s := &series{
		attempts: of(attempts), acquired: of(acquired), contended: of(contended),
		reentered: of(reentered), renewals: of(renewals), late: of(lateRenewals),
		held: v.held.WithLabelValues(class),
	}
	for r := range reasonCount {
		s.failures[r] = v.counters[acquireFailures].WithLabelValues(class, r.String())
		shown := r
		if !r.ofRenewal() {
			shown = reasonOther
		}
		s.renewFailures[r] = v.counters[renewFailures].WithLabelValues(class, shown.String())
	}
	for i, name := range resultNames {
		s.wait[i] = newTiming(v.wait.WithLabelValues(class, name))
	}
	for i, name := range outcomeNames {
		s.hold[i] = newTiming(v.hold.WithLabelValues(class, name))
		s.releases[i] = v.counters[releases].WithLabelValues(class, name)
	}
	for i, name := range lossNames {
		s.lost[i] = v.counters[lost].WithLabelValues(class, name)
	}
	for i, name := range cleanupNames {
		s.cleanups[i] = v.counters[cleanups].WithLabelValues(class, name)
	}
	return s
}

// classes finds the series of a class: without a lock once it is known.
type classes struct {
	vectors *vectors
	limit   int
	known   atomic.Pointer[map[string]*series] // by label value; never changed, only replaced

	mu    sync.Mutex // held while one is added
	named int        // under mu: classes apart from OtherClass
}

func newClasses(v *vectors, limit int) *classes {
	c := &classes{vectors: v, limit: limit}
	c.known.Store(&map[string]*series{})
	return c
}

// of returns the series of a class as a caller gave it.
func (c *classes) of(class string) *series {
	if class == "" {
		class = DefaultClass
	}
	known := *c.known.Load()
	if s := known[class]; s != nil {
		return s
	}
	class = fit(class)
	if s := known[class]; s != nil {
		return s
	}
	// Once there is OtherClass because of the limit, this is where all others
	// go, and no lock is needed for it; mu decides that.
	if s := known[OtherClass]; s != nil && len(known) > c.limit {
		return s
	}
	return c.add(class)
}

// add makes the series of a class that was not known, or returns OtherClass.
func (c *classes) add(class string) *series {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := *c.known.Load()
	if class != OtherClass && known[class] == nil && c.named >= c.limit {
		class = OtherClass
	}
	if s := known[class]; s != nil {
		return s
	}
	s := newSeries(c.vectors, class)
	next := maps.Clone(known)
	next[class] = s
	c.known.Store(&next)
	if class != OtherClass {
		c.named++
	}
	return s
}

// fit makes a class a label value: valid UTF-8 of a bounded length.
func fit(class string) string {
	if len(class) > maxClassBytes {
		cut := maxClassBytes
		for cut > maxClassBytes-utf8.UTFMax && !utf8.RuneStart(class[cut]) {
			cut--
		}
		class = class[:cut]
	}
	return strings.ToValidUTF8(class, "\uFFFD")
}
