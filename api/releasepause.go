package api

import "time"

// Stops is what keeps releases from happening now: the answer of GET
// /api/v1/stops, and of every change of it.
type Stops struct {
	// Stopped says that nothing is released at all: the kill switch is on, by an
	// admin or in the configuration, or it is not known whether it is.
	Stopped    bool       `json:"stopped"`
	KillSwitch KillSwitch `json:"kill_switch"`
	// Frozen says that nothing is released without a person.
	Frozen bool   `json:"frozen"`
	Freeze Freeze `json:"freeze"`
}

// KillSwitch is the emergency stop of all releases.
type KillSwitch struct {
	// On says that an admin turned it on; By, Since and Reason are of that.
	On     bool      `json:"on"`
	By     string    `json:"by,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	Reason string    `json:"reason,omitempty"`
	// Configured says that release.kill_switch is true: no admin turns that off
	// here.
	Configured bool `json:"configured"`
	// Unknown says that the store could not be read since the start: until it is,
	// everything counts as stopped.
	Unknown bool `json:"unknown,omitempty"`
}

// Freeze is a time in which nothing is released without a person.
type Freeze struct {
	// Until is the end of an admin's freeze; absent without one.
	Until  time.Time `json:"until,omitzero"`
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	// Configured is the name of the window of release.freeze that holds now; empty
	// for none.
	Configured string `json:"configured,omitempty"`
}

// SetKillSwitch is the body of POST /api/v1/stops/kill-switch.
type SetKillSwitch struct {
	// On must be there: what is left out must not let releases go on.
	On     *bool  `json:"on"`
	Reason string `json:"reason"`
}

// SetFreeze is the body of POST /api/v1/stops/freeze: Until or ForMs, or End. One
// of the three is needed.
type SetFreeze struct {
	Until time.Time `json:"until,omitzero"`
	ForMs int64     `json:"for_ms,omitempty"`
	// End ends the freeze.
	End    bool   `json:"end,omitempty"`
	Reason string `json:"reason"`
}
