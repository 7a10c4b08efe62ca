package api

import "time"

// LockList is the answer of GET /api/v1/locks. Total counts what the filter
// matched, before limit.
type LockList struct {
	Locks []Lock `json:"locks"`
	Total int    `json:"total"`
	// Next, in every list that has it, is the cursor of the next page; absent on the
	// last one.
	Next string `json:"next,omitempty"`
	// Unseen are the targets of which the list may say too little, such as those
	// whose first sweep is under way; absent without any.
	Unseen []Unseen `json:"unseen,omitempty"`
}

// LockEventList is the answer of GET /api/v1/locks/events, newest first.
type LockEventList struct {
	Events []LockEvent `json:"events"`
}

// FindingList is the answer of GET /api/v1/findings.
type FindingList struct {
	Findings []ListedFinding `json:"findings"`
	Total    int             `json:"total"`
	Next     string          `json:"next,omitempty"`
	Unseen   []Unseen        `json:"unseen,omitempty"`
}

// TargetList is the answer of GET /api/v1/targets.
type TargetList struct {
	Targets []Target `json:"targets"`
}

// ClassList is the answer of GET /api/v1/classes, in the order they match.
type ClassList struct {
	Classes []Class `json:"classes"`
}

// RequestList is the answer of GET /api/v1/requests, newest first.
type RequestList struct {
	Requests []Request `json:"requests"`
	Next     string    `json:"next,omitempty"`
}

// EntryList is the answer of GET /api/v1/audit, newest first, or oldest first
// behind a place that was given.
type EntryList struct {
	Entries []Entry `json:"entries"`
	// Next is what `before` (or `after`) takes for the next page; absent on the last.
	Next int64 `json:"next,omitempty"`
}

// Paused is the answer of POST /-/pause: the targets that nothing is asked of any
// more. Until is absent for a pause without an end.
type Paused struct {
	Paused []string  `json:"paused"`
	Until  time.Time `json:"until,omitzero"`
}

// Resumed is the answer of POST /-/resume: the targets that were paused.
type Resumed struct {
	Resumed []string `json:"resumed"`
}

// Reloaded is the answer of POST /-/reload.
type Reloaded struct {
	Reloaded bool `json:"reloaded"`
}
