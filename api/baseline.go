package api

// BaselineVersion is the version of [Baseline] that this package writes.
const BaselineVersion = 1

// Words of Finding.Baseline.
const (
	BaselineKnown = "known"
	BaselineNew   = "new"
)

// Baseline is a file of findings that are accepted: `locksteward scan --baseline
// FILE` does not count them. Nothing in it is secret, but for the names of keys.
type Baseline struct {
	Version int `json:"version"`
	// Findings are in the order of rule, db, key, class and fingerprint.
	Findings []BaselineFinding `json:"findings"`
}

// BaselineFinding is one accepted finding. Its fingerprint alone decides; the
// rest is for people.
type BaselineFinding struct {
	Fingerprint string `json:"fingerprint"`
	Rule        string `json:"rule"`
	Severity    string `json:"severity"`
	DB          int    `json:"db"`
	Key
	Class string `json:"class"`
	// Accepted is the date on which it came into the file, YYYY-MM-DD, UTC.
	Accepted string `json:"accepted"`
}
