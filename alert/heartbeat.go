package alert

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// DefaultHeartbeatEvery is how often a heartbeat is sent.
const DefaultHeartbeatEvery = time.Minute

// TypeHeartbeat is the type of a heartbeat's body.
const TypeHeartbeat = "heartbeat"

// Heartbeat is a dead-man's switch: a monitor outside gets heartbeats while the agent
// sweeps, and alerts when they stop: docs/deadman.md.
type Heartbeat struct {
	Webhook *Endpoint `yaml:"webhook"`
	// Every is how often it is sent.
	Every time.Duration `yaml:"every"`
}

// WithDefaults returns h with what it leaves out. One attempt ends before the next
// begins.
func (h Heartbeat) WithDefaults() Heartbeat {
	h.Every = cmp.Or(h.Every, DefaultHeartbeatEvery)
	if h.Webhook != nil {
		w := h.Webhook.withDefaults()
		if h.Webhook.Timeout == 0 {
			w.Timeout = max(min(w.Timeout, h.Every/2), minTimeout)
		}
		h.Webhook = &w
	}
	return h
}

// problems expects the defaults to be filled in.
func (h Heartbeat) problems() []error {
	var errs []error
	within := h.Every >= time.Second && h.Every <= 24*time.Hour
	if !within {
		errs = append(errs, fmt.Errorf("every: must be 1s to 24h, got %s", h.Every))
	}
	if h.Webhook == nil {
		return append(errs, errors.New("webhook: is missing: write where heartbeats go, as {url_file: PATH}"))
	}
	// A default timeout is within every, if that is valid.
	if within && h.Webhook.Timeout > h.Every && h.Webhook.Timeout <= time.Minute {
		errs = append(errs, fmt.Errorf("webhook.timeout: must be at most every (%s), got %s", h.Every, h.Webhook.Timeout))
	}
	for _, err := range h.Webhook.webhookProblems() {
		errs = append(errs, fmt.Errorf("webhook.%w", err))
	}
	return errs
}

// Open reads the files that h, which is valid and has its defaults, names, and
// reports all problems at once.
func (h Heartbeat) Open() (*Caller, error) {
	c, err := NewCaller(*h.Webhook)
	if err != nil {
		return nil, errors.Join(prefixed("heartbeat.webhook.", err)...)
	}
	return c, nil
}

// Beat is the body of a heartbeat. Fields may be added within its version.
type Beat struct {
	Version string    `json:"version"`
	Type    string    `json:"type"`
	ID      string    `json:"id"` // the webhook-id header
	At      time.Time `json:"at"`
	// Agent identifies the process.
	Agent string `json:"agent"`
	// Targets are how many are configured, and how many answered last.
	Targets BeatTargets `json:"targets"`
	// OldestSweepSeconds is how long ago the complete sweep ended that is the longest
	// ago, of the last ones of all targets.
	OldestSweepSeconds float64 `json:"oldest_sweep_seconds"`
}

// BeatTargets counts targets.
type BeatTargets struct {
	Total int `json:"total"`
	Up    int `json:"up"`
}

// Encode fills in what all heartbeats share, and returns the webhook-id and the body.
func (b Beat) Encode() (id string, body []byte, err error) {
	b.Version, b.Type, b.At = PayloadVersion, TypeHeartbeat, stamp(b.At)
	b.ID = fmt.Sprintf("beat_%s_%d", b.Agent, b.At.UnixMilli())
	body, err = json.Marshal(b)
	return b.ID, body, err
}
