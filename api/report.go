package api

import "time"

// Report is the answer of GET /api/v1/report and of `locksteward report --output
// json`: how locks were held, by class.
type Report struct {
	// Since and Until are the time that the report covers; it begins at a full
	// hour where an agent kept it.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Classes are in the order of target and class.
	Classes []ClassReport `json:"classes"`
	// Notes say in sentences what is missing.
	Notes []string `json:"notes"`
}

// ClassReport is how the locks of one class were held.
type ClassReport struct {
	// Target is empty where the report is of one server without a name.
	Target string `json:"target,omitempty"`
	Class  string `json:"class"`
	Team   string `json:"team"`
	// Match are the patterns of the class as it is now; empty for the default class
	// and for classes that are configured no longer.
	Match []string `json:"match"`
	// Holds is how many holds ended and were seen.
	Holds int64 `json:"holds"`
	// P50, P95 and P99 are quantiles of those; null without any.
	P50 *HoldBounds `json:"p50"`
	P95 *HoldBounds `json:"p95"`
	P99 *HoldBounds `json:"p99"`
	// Longest is the longest hold, of those that ended and those that last; null
	// without any.
	Longest *HeldKey `json:"longest"`
	// Ended counts how holds ended.
	Ended HoldEndings `json:"ended"`
	// Open are the locks that are held now.
	Open OpenHolds `json:"open"`
	// TTL is the median of the TTLs that were set; null when not known.
	TTL *HoldBounds `json:"ttl"`
	// Contention is null when no library of the class tells.
	Contention *Contention `json:"contention"`
	// Worst are the keys with the longest holds, the longest first.
	Worst []HeldKey `json:"worst"`
	// ExpectMs is what the class expects now; null for nothing.
	ExpectMs  *int64          `json:"expect_ms"`
	Suggested SuggestedPolicy `json:"suggested"`
	// Notes say in sentences how far the numbers can be relied on.
	Notes []string `json:"notes"`
}

// HoldBounds is a duration that is known from two sides. AtMostMs is null when
// the upper side is not known.
type HoldBounds struct {
	AtLeastMs int64  `json:"at_least_ms"`
	AtMostMs  *int64 `json:"at_most_ms"`
}

// How far the bounds of a duration may be apart that counts as known.
const (
	knownWithin = 5 * time.Second
	knownFactor = 10
)

// Known says whether the bounds tell a length: an upper bound that is knownWithin and
// knownFactor times above the lower tells how far two looks were apart, and so little
// as a lower bound of nothing tells nothing.
func (b HoldBounds) Known() bool {
	if b.AtMostMs == nil {
		return b.AtLeastMs > 0
	}
	return *b.AtMostMs-b.AtLeastMs <= knownWithin.Milliseconds() || *b.AtMostMs <= knownFactor*b.AtLeastMs
}

// HeldKey is one hold of one key.
type HeldKey struct {
	DB int `json:"db"`
	Key
	HoldBounds
	// How is released, expired, deleted or replaced, or held for one that lasts.
	How     string    `json:"how"`
	EndedAt time.Time `json:"ended_at,omitzero"`
	Holder  string    `json:"holder"`
}

// HoldEndings counts holds by how they ended; released is "gone before its
// expiry" for libraries that cannot tell.
type HoldEndings struct {
	Released int64 `json:"released"`
	Expired  int64 `json:"expired"`
	Deleted  int64 `json:"deleted"`
	Replaced int64 `json:"replaced"`
}

// OpenHolds are the locks of a class that are held now.
type OpenHolds struct {
	Locks      int `json:"locks"`
	WithoutTTL int `json:"without_ttl"`
}

// Contention is who wanted a lock and did not get it at once. What is not known
// is null; counts are lower bounds.
type Contention struct {
	Acquired  *int64 `json:"acquired"`
	Contended *int64 `json:"contended"`
	Failed    *int64 `json:"failed"`
	// MaxWaiters is the most that waited at one time, LongestWaitMs the longest that
	// one had waited.
	MaxWaiters    *int64 `json:"max_waiters"`
	LongestWaitMs *int64 `json:"longest_wait_ms"`
}

// SuggestedPolicy is what would fit the class, or null and the reason why nothing
// is said.
type SuggestedPolicy struct {
	ExpectMs     *int64 `json:"expect_ms"`
	ExpectReason string `json:"expect_reason"`
	TTLMs        *int64 `json:"ttl_ms"`
	TTLReason    string `json:"ttl_reason"`
}
