package locksteward

import (
	"encoding/json"
	"time"
)

// Entry is one line of the audit trail. Hash covers all other fields and
// PrevHash, so that a changed or dropped line breaks the chain.
type Entry struct {
	Seq     int64
	At      time.Time // agent's clock
	Actor   string    // user name, or "agent"
	Action  string    // "release.request", "release.approve", ...
	Target  string
	Key     string // exact bytes
	Subject string // request id, or what else the action is about
	Reason  string
	Outcome string
	Detail  json.RawMessage // action's own facts; no token, no password

	// Event is what people are notified of with this entry; nil for none. The entry is written with it, and read without it.
	Event *Event

	PrevHash string
	Hash     string
}
