package lockprom

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metric is one line of the table of metrics.
type Metric struct {
	Name   string
	Type   string // counter, gauge or histogram
	Help   string
	Labels []string // apart from constant ones
}

// Metrics returns the table of all metrics of a [Collector], sorted by topic.
func Metrics() []Metric {
	list := slices.Clone(table[:])
	for i := range list {
		list[i].Labels = slices.Clone(list[i].Labels)
	}
	return list
}

// metricID is a line of the table.
type metricID int

const (
	attempts metricID = iota
	acquired
	acquireFailures
	contended
	reentered
	waitTime
	held
	holdTime
	releases
	lost
	renewals
	lateRenewals
	renewFailures
	cleanups
	beatFailures
	pushFailures
	metricCount
)

const (
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
)

// table is every metric. A name or a label here is a contract
// (docs/client-metrics.md).
var table = [metricCount]Metric{
	attempts: {
		"locksteward_client_acquire_attempts_total", counter,
		"Calls of Acquire, TryAcquire and Do, counted at their end: acquired, reentered or failed.",
		[]string{"class"},
	},
	acquired: {
		"locksteward_client_acquired_total", counter,
		"Locks taken.",
		[]string{"class"},
	},
	acquireFailures: {
		"locksteward_client_acquire_failures_total", counter,
		"Calls that did not get the lock, by reason.",
		[]string{"class", "reason"},
	},
	contended: {
		"locksteward_client_acquire_contended_total", counter,
		"Calls that found another holder when they looked first, however they ended.",
		[]string{"class"},
	},
	reentered: {
		"locksteward_client_acquire_reentered_total", counter,
		"Calls by a session that had the lock already.",
		[]string{"class"},
	},
	waitTime: {
		"locksteward_client_wait_seconds", histogram,
		"How long calls took, the round trip included, by result: acquired, held (given up while another had it) or failed. Without the reentered ones.",
		[]string{"class", "result"},
	},
	held: {
		"locksteward_client_locks_held", gauge,
		"Locks held now.",
		[]string{"class"},
	},
	holdTime: {
		"locksteward_client_hold_seconds", histogram,
		"How long holds lasted, from the request that took the lock to their first end, by outcome.",
		[]string{"class", "outcome"},
	},
	releases: {
		"locksteward_client_releases_total", counter,
		"Holds that ended, each once, by outcome: released, lost (before its release) or unknown (no reply; freed in the background).",
		[]string{"class", "outcome"},
	},
	lost: {
		"locksteward_client_locks_lost_total", counter,
		"Holds that were lost, by reason.",
		[]string{"class", "reason"},
	},
	renewals: {
		"locksteward_client_renewals_total", counter,
		"Leases renewed or extended.",
		[]string{"class"},
	},
	lateRenewals: {
		"locksteward_client_renewals_late_total", counter,
		"Those of them whose answer came late: more than a tenth of the interval after they were due. The process or the server stalls, or the network does.",
		[]string{"class"},
	},
	renewFailures: {
		"locksteward_client_renewal_failures_total", counter,
		"Attempts to renew or extend a lease that failed, by reason. Each is tried again while the lease lasts.",
		[]string{"class", "reason"},
	},
	cleanups: {
		"locksteward_client_cleanups_total", counter,
		"Locks of unknown outcome that were freed in the background (cleaned), or given up at their TTL (failed).",
		[]string{"class", "outcome"},
	},
	beatFailures: {
		"locksteward_client_heartbeat_failures_total", counter,
		"Heartbeats of the process that were not written.",
		nil,
	},
	pushFailures: {
		"locksteward_client_push_failures_total", counter,
		"Failures of the connection that wakes waiters and reports forced releases. Waiters poll meanwhile.",
		nil,
	},
}

// defaultBuckets are the classic buckets in seconds, from a round trip on the
// same host to a batch job.
var defaultBuckets = []float64{
	0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 60, 180, 600,
}

// Bounds of the native histograms: 10 % wide buckets, at most 160 of them, and
// a fresh start at most once an hour when those do not do.
const (
	nativeFactor     = 1.1
	nativeMaxBuckets = 160
	nativeReset      = time.Hour
)

// vectors are the metrics of one collector.
type vectors struct {
	counters   [metricCount]*prometheus.CounterVec
	held       *prometheus.GaugeVec
	wait, hold *prometheus.HistogramVec
	beat, push prometheus.Counter
}

func newVectors(o Options) *vectors {
	v := &vectors{}
	for id, m := range table {
		switch m.Type {
		case counter:
			v.counters[id] = prometheus.NewCounterVec(prometheus.CounterOpts{
				Name: m.Name, Help: m.Help, ConstLabels: o.ConstLabels,
			}, m.Labels)
		case gauge:
			v.held = prometheus.NewGaugeVec(prometheus.GaugeOpts{
				Name: m.Name, Help: m.Help, ConstLabels: o.ConstLabels,
			}, m.Labels)
		case histogram:
			h := prometheus.NewHistogramVec(prometheus.HistogramOpts{
				Name: m.Name, Help: m.Help, ConstLabels: o.ConstLabels,
				Buckets:                         o.Buckets,
				NativeHistogramBucketFactor:     nativeFactor,
				NativeHistogramMaxBucketNumber:  nativeMaxBuckets,
				NativeHistogramMinResetDuration: nativeReset,
			}, m.Labels)
			if metricID(id) == waitTime {
				v.wait = h
			} else {
				v.hold = h
			}
		}
	}
	v.beat = v.counters[beatFailures].WithLabelValues()
	v.push = v.counters[pushFailures].WithLabelValues()
	return v
}

// each calls f with every metric, in the order of the table.
func (v *vectors) each(f func(prometheus.Collector)) {
	for id := range metricCount {
		switch {
		case v.counters[id] != nil:
			f(v.counters[id])
		case id == held:
			f(v.held)
		case id == waitTime:
			f(v.wait)
		case id == holdTime:
			f(v.hold)
		}
	}
}
