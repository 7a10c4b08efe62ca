package api

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
)

// Place is one place of the audit chain.
type Place struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// Checkpoint is a place of the audit chain to which the agent put its name.
type Checkpoint struct {
	Place
	At time.Time `json:"at"`
	// KeyID names the key, empty where there is none; Signature is base64.
	KeyID     string `json:"key_id"`
	Signature string `json:"signature"`
	// Line is all of it as it is written down elsewhere.
	Line string `json:"line"`
}

// CheckpointList is the answer of GET /api/v1/audit/checkpoints, newest first.
type CheckpointList struct {
	Checkpoints []Checkpoint `json:"checkpoints"`
}

// AuditVerified is the answer of GET /api/v1/audit/verify.
type AuditVerified struct {
	// Whole says that nothing was changed, dropped, swapped, inserted or cut off.
	Whole bool `json:"whole"`
	// Entries is how many were found good.
	Entries int64 `json:"entries"`
	// BrokenAt is the first entry that does not fit, Problem what is wrong with it;
	// absent in a trail that is whole.
	BrokenAt int64  `json:"broken_at,omitempty"`
	Problem  string `json:"problem,omitempty"`
	// Base is the place behind which the trail begins: what retention took last.
	Base Place `json:"base"`
	Head Place `json:"head"`
	// Checkpoints is how many of the store's own are on the chain, Signed how many
	// of them have a good signature by the agent's key.
	Checkpoints int   `json:"checkpoints"`
	Signed      int   `json:"signed"`
	DurationMs  int64 `json:"duration_ms"`
}

// AuditStatus is the answer of GET /api/v1/audit/status.
type AuditStatus struct {
	Entries int64 `json:"entries"`
	Base    Place `json:"base"`
	Head    Place `json:"head"`
	// KeyID and PublicKey (PEM) are of the key that signs checkpoints; Unsigned is
	// why there is none.
	KeyID     string `json:"key_id"`
	PublicKey string `json:"public_key"`
	Unsigned  string `json:"unsigned,omitempty"`
	// Checkpoint is the last one, null before the first.
	Checkpoint *Checkpoint `json:"checkpoint"`
	Sinks      []AuditSink `json:"sinks"`
}

// AuditSink is how far one receiver of the live trail is.
type AuditSink struct {
	Name string `json:"name"`
	// Kind is stdout, file, syslog or webhook.
	//api:enum stdout|file|syslog|webhook
	Kind string `json:"kind"`
	// Seq is the last entry that it got; Behind is how many it lacks.
	Seq    int64 `json:"seq"`
	Behind int64 `json:"behind"`
	// Missed is how many entries it will never get, since retention took them first.
	Missed int64 `json:"missed"`
	// Problem is why it gets nothing now; Since is since when.
	Problem string    `json:"problem,omitempty"`
	Since   time.Time `json:"since,omitzero"`
}

// AuditImport is the body of POST /api/v1/audit/import: lines of a file that
// `locksteward unlock` wrote, as they are.
type AuditImport struct {
	// File is the name of the file, for the trail.
	//api:optional
	File string `json:"file"`
	// FirstLine is the number of the first line in that file, for problems; 0 is 1.
	FirstLine int      `json:"first_line,omitempty"`
	Lines     []string `json:"lines"`
	// Target takes the place of the lines' own, which is "redis" for all of them.
	Target string `json:"target,omitempty"`
}

// AuditImported is what became of an import.
type AuditImported struct {
	Imported int `json:"imported"`
	// Known is how many lines the trail had already.
	Known int `json:"known"`
}

// NewExactEntry is [NewEntry] with the exact bytes of the detail in any case: the
// form of exports and sinks.
func NewExactEntry(e locksteward.Entry) Entry {
	out := NewEntry(e)
	if len(e.Detail) > 0 {
		out.DetailB64 = base64.StdEncoding.EncodeToString(e.Detail)
	}
	return out
}

// exactDetail returns the detail in base64 where JSON would write it in other
// bytes than those that the hash covers; "" where it would not.
func exactDetail(detail json.RawMessage) string {
	if len(detail) == 0 {
		return ""
	}
	if plain, err := json.Marshal(detail); err == nil && bytes.Equal(locksteward.EscapeJSON(plain), detail) {
		return ""
	}
	return base64.StdEncoding.EncodeToString(detail)
}

// Entry converts back, so that the hash can be computed. The error wraps
// locksteward.ErrInvalid.
func (e Entry) Entry() (locksteward.Entry, error) {
	key, err := e.Bytes()
	if err != nil {
		return locksteward.Entry{}, err
	}
	out := locksteward.Entry{
		Seq: e.Seq, At: e.At, Actor: e.Actor, Action: e.Action, Target: e.Target, Key: key, Subject: e.Subject,
		Reason: e.Reason, Outcome: e.Outcome, PrevHash: e.PrevHash, Hash: e.Hash,
	}
	switch {
	case e.DetailB64 != "":
		if out.Detail, err = base64.StdEncoding.DecodeString(e.DetailB64); err != nil {
			return locksteward.Entry{}, fmt.Errorf("detail_b64: %w: must be standard base64: %w", locksteward.ErrInvalid, err)
		}
	case len(e.Detail) > 0 && string(e.Detail) != "null":
		out.Detail = e.Detail
	}
	return out, nil
}

// OutcomeWords is the outcome of an entry for people. That of an act that was recorded
// before it was done is "started": the entry after it has the result.
func OutcomeWords(outcome string) string {
	if outcome == "intent" {
		return "started"
	}
	return outcome
}
