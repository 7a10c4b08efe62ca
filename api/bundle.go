package api

import "github.com/locksteward/locksteward"

// Bundle is the release requests for the locks of one dead host, decided on
// together. Each is compared and executed on its own.
type Bundle struct {
	ID string `json:"id"`
	// Target and Host are those of all its requests.
	Target string `json:"target"`
	Host   string `json:"host"`
	// EvidenceHash is what a decision on all of them signs.
	EvidenceHash string `json:"evidence_hash"`
	// Open is how many requests can still be decided on.
	Open     int       `json:"open"`
	Requests []Request `json:"requests"`
	// LeftOut are locks that were asked for and have no request; known only to who
	// made the bundle, and empty for everybody else.
	LeftOut []LeftOut `json:"left_out"`
	// Problems are what kept requests of the bundle from being decided on, after a
	// decision that took others.
	Problems []string `json:"problems"`
}

// LeftOut is a lock that is not in a bundle, and why.
type LeftOut struct {
	Key
	Why string `json:"why"`
}

// NewLeftOut converts a lock that was left out.
func NewLeftOut(key string, why error) LeftOut {
	return LeftOut{Key: NewKey(key), Why: why.Error()}
}

// CreateBundle is the body of POST /api/v1/bundles.
type CreateBundle struct {
	Target string `json:"target"`
	// Host is the dead host, as the locks' holders name it.
	Host string `json:"host"`
	// Keys are the locks. Left out, they are the locks of the target whose holder is
	// on the host and dead, as the rules say.
	//api:schema KeyName
	Keys   []Key  `json:"keys,omitempty"`
	Reason string `json:"reason"`
}

// NewBundle puts a bundle's requests together; there is at least one.
func NewBundle(id, hash string, requests []Request) Bundle {
	out := Bundle{ID: id, EvidenceHash: hash, Requests: append([]Request{}, requests...), LeftOut: []LeftOut{}, Problems: []string{}}
	for _, r := range requests {
		out.Target, out.Host = r.Evidence.Target, r.Evidence.Holder.Host
		if state := locksteward.RequestState(r.State); !state.Final() && state != locksteward.RequestExecuting {
			out.Open++
		}
	}
	return out
}
