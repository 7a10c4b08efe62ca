package store

import (
	"encoding/json"
	"time"

	"github.com/locksteward/locksteward"
)

// evidenceRow is the stored form of Evidence. Target, DB and Key have their own columns,
// since the bytes of a key need not be text.
type evidenceRow struct {
	Class       string    `json:"class"`
	Library     string    `json:"library"`
	Type        string    `json:"type"`
	Identity    string    `json:"identity"`
	TokenDigest string    `json:"token_digest"`
	ExpireAt    int64     `json:"expire_at"`
	Count       int64     `json:"count"`
	Holder      holderRow `json:"holder"`
	ClaimID     string    `json:"claim_id"`
	Fence       int64     `json:"fence"`
	Findings    []string  `json:"findings"`
	At          time.Time `json:"at"`

	Proof       string        `json:"proof,omitempty"`
	Policy      string        `json:"policy,omitempty"`
	Act         string        `json:"act,omitempty"`
	HolderAlive bool          `json:"holder_alive,omitempty"`
	Placeholder time.Duration `json:"placeholder_ns,omitempty"`
	Undo        time.Duration `json:"undo_ns,omitempty"`
	Of          string        `json:"of,omitempty"`
	Bundle      int           `json:"bundle,omitempty"`
	BreakGlass  bool          `json:"break_glass,omitempty"`
	SharedToken bool          `json:"shared_token,omitempty"`

	BeyondPerMinute int `json:"beyond_per_minute,omitempty"`
}

type holderRow struct {
	App      string `json:"app"`
	Host     string `json:"host"`
	PID      int    `json:"pid"`
	Session  string `json:"session"`
	Instance string `json:"instance"`
}

func encodeEvidence(e locksteward.Evidence) (string, error) {
	raw, err := json.Marshal(evidenceRow{
		Class: e.Class, Library: e.Library, Type: e.Type, Identity: string(e.Identity),
		TokenDigest: e.TokenDigest, ExpireAt: e.ExpireAt, Count: e.Count, Holder: holderRow(e.Holder),
		ClaimID: e.ClaimID, Fence: e.Fence, Findings: e.Findings, At: e.At.UTC(),
		Proof: string(e.Proof), Policy: e.Policy, Act: string(e.Act), HolderAlive: e.HolderAlive,
		Placeholder: e.Placeholder, Undo: e.Undo, Of: e.Of, Bundle: e.Bundle, BreakGlass: e.BreakGlass, SharedToken: e.SharedToken,
		BeyondPerMinute: e.BeyondPerMinute,
	})
	return string(raw), err
}

func decodeEvidence(text, target string, db int, key string) (locksteward.Evidence, error) {
	var row evidenceRow
	err := json.Unmarshal([]byte(text), &row)
	return locksteward.Evidence{
		Target: target, DB: db, Key: key,
		Class: row.Class, Library: row.Library, Type: row.Type, Identity: locksteward.Identity(row.Identity),
		TokenDigest: row.TokenDigest, ExpireAt: row.ExpireAt, Count: row.Count, Holder: locksteward.Holder(row.Holder),
		ClaimID: row.ClaimID, Fence: row.Fence, Findings: row.Findings, At: row.At,
		Proof: locksteward.Proof(row.Proof), Policy: row.Policy, Act: locksteward.Act(row.Act), HolderAlive: row.HolderAlive,
		Placeholder: row.Placeholder, Undo: row.Undo, Of: row.Of, Bundle: row.Bundle, BreakGlass: row.BreakGlass, SharedToken: row.SharedToken,
		BeyondPerMinute: row.BeyondPerMinute,
	}, err
}
