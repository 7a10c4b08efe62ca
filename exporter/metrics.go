package exporter

import "slices"

// MetricType is the Prometheus type of a metric.
type MetricType string

// The types in use.
const (
	Gauge     MetricType = "gauge"
	Counter   MetricType = "counter"
	Histogram MetricType = "histogram"
)

// Metric is one line of the table of metrics.
type Metric struct {
	Name   string
	Type   MetricType
	Help   string
	Labels []string
}

// Metrics returns the table of all metrics that the exporter can show, apart
// from those of the Go runtime, the process and the HTTP handler.
func Metrics() []Metric { return slices.Clone(table[:]) }

// Other is the class of everything whose class the configuration does not have.
const Other = "_other"

// metricID is a line of the table.
type metricID int

const (
	buildInfo metricID = iota
	targetInfo
	targetUp
	locks
	locksWithoutTTL
	locksOverdue
	lockLongestHold
	lockAge
	lockHold
	lockWaiters
	lockAcquires
	lockAcquireFailures
	lockRenewals
	lockRenewalFailures
	locksLost
	locksExpired
	lockCandidates
	findings
	findingsUnsaved
	classInfo
	classMatched
	releaseEnabled
	leader
	sweepDuration
	sweepKeys
	sweepLastSuccess
	sweepComplete
	budgetThrottled
	paceShare
	budgetPaused
	commandRefused
	watchMode
	watchBlind
	watchMissed
	watchDelay
	classWatched
	redisConnectedClients
	redisMaxClients
	redisMemoryUsed
	redisMemoryMax
	redisCPU
	redisEvictedKeys
	releaseRequests
	releases
	deliveries
	alertsSuppressed
	alertsOmitted
	alertGroups
	templateFailures
	outboxDepth
	outboxOldest
	outboxDead
	circuitOpen
	replicas
	configLastReload
	consoleInfo
	heartbeatLastSuccess
	sweepStale
	certificateExpiry
	credentialRefused
	targetSourceUp
	storeDamaged
	storeNeedsRepair
	storeErrors
	metricCount
)

var (
	byTarget = []string{"target"}
	byClass  = []string{"target", "class"}
	byNode   = []string{"target", "node"}
	byFile   = []string{"use", "target", "file"}
	bySource = []string{"source"}
)

// holdBuckets are the classic buckets of hold times in seconds, from a short
// critical section to a day.
var holdBuckets = []float64{0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 21600, 86400}
