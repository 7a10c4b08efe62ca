package api

import (
	"encoding/json"
	"time"

	"github.com/locksteward/locksteward"
)

// Entry is one line of the audit trail.
type Entry struct {
	Seq    int64     `json:"seq"`
	At     time.Time `json:"at,omitzero"`
	Actor  string    `json:"actor"`
	Action string    `json:"action"`
	Target string    `json:"target"`
	Key
	Subject string `json:"subject"`
	Reason  string `json:"reason"`
	Outcome string `json:"outcome"`
	// Detail is the action's own facts, null when there are none.
	Detail json.RawMessage `json:"detail"`
	// DetailB64 is the exact bytes of the detail, which the hash covers, where JSON
	// does not keep them; in exports always.
	DetailB64 string `json:"detail_b64,omitempty"`
	PrevHash  string `json:"prev_hash"`
	Hash      string `json:"hash"`
}

// NewEntry converts an audit entry. At keeps its full precision: the hash
// covers it.
func NewEntry(e locksteward.Entry) Entry {
	out := Entry{
		Seq: e.Seq, At: e.At.UTC(), Actor: e.Actor, Action: e.Action, Target: e.Target, Key: NewKey(e.Key),
		Subject: e.Subject, Reason: e.Reason, Outcome: e.Outcome, PrevHash: e.PrevHash, Hash: e.Hash,
	}
	// A detail that is not JSON must not make the whole list unreadable.
	if json.Valid(e.Detail) {
		out.Detail = e.Detail
	}
	out.DetailB64 = exactDetail(e.Detail)
	return out
}
