package api

import "time"

// ReleasePause is what pauses releases now: the answer of GET /api/v1/release/pause,
// and of every change of it.
type ReleasePause struct {
	// All refuses requests and approvals and executes nothing; denying and undoing still
	// work.
	All PauseOfScope `json:"all"`
	// Automatic keeps the agent from releasing without a person.
	Automatic PauseOfScope `json:"automatic"`
}

// PauseOfScope says whether releases of one scope are paused, and by whom.
type PauseOfScope struct {
	Paused bool `json:"paused"`
	// By, Since, Until and Reason are of the pause that an admin set; Until is absent if
	// it lasts until somebody resumes.
	By     string    `json:"by,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	Until  time.Time `json:"until,omitzero"`
	Reason string    `json:"reason,omitempty"`
	// Configured names what the configuration pauses now: release.paused, or a window of
	// release.pause_windows. No admin ends that here.
	Configured string `json:"configured,omitempty"`
	// Unknown says that the store could not be read since the start: until it is,
	// all releases count as paused.
	Unknown bool `json:"unknown,omitempty"`
}

// The scopes of a pause.
const (
	PauseAll       = "all"
	PauseAutomatic = "automatic"
)

// PauseReleases is the body of POST /api/v1/release/pause. Without Until and ForMs
// the pause lasts until somebody resumes.
type PauseReleases struct {
	//api:enum all|automatic
	Scope  string    `json:"scope"`
	Until  time.Time `json:"until,omitzero"`
	ForMs  int64     `json:"for_ms,omitempty"`
	Reason string    `json:"reason"`
}

// ResumeReleases is the body of POST /api/v1/release/resume.
type ResumeReleases struct {
	//api:enum all|automatic
	Scope  string `json:"scope"`
	Reason string `json:"reason"`
}
