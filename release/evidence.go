package release

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// canonical is Evidence in the one encoding that is hashed: fixed order of
// fields, the key's exact bytes, UTC.
type canonical struct {
	Version     int      `json:"v"`
	Target      string   `json:"target"`
	DB          int      `json:"db"`
	Key         string   `json:"key_b64"`
	Class       string   `json:"class"`
	Library     string   `json:"library"`
	Type        string   `json:"type"`
	Identity    string   `json:"identity"`
	TokenDigest string   `json:"token_digest"`
	ExpireAt    int64    `json:"expire_at"`
	Count       int64    `json:"count"`
	Holder      []string `json:"holder"`
	ClaimID     string   `json:"claim_id"`
	Fence       int64    `json:"fence"`
	Findings    []string `json:"findings"`
	At          string   `json:"at"`

	// Left out where they are empty, as they were before there were any.
	Proof       string `json:"proof,omitempty"`
	Policy      string `json:"policy,omitempty"`
	Act         string `json:"act,omitempty"`
	HolderAlive bool   `json:"holder_alive,omitempty"`
	Placeholder int64  `json:"placeholder_ns,omitempty"`
	Undo        int64  `json:"undo_ns,omitempty"`
	Of          string `json:"of,omitempty"`
	Bundle      int    `json:"bundle,omitempty"`
	BreakGlass  bool   `json:"break_glass,omitempty"`
	SharedToken bool   `json:"shared_token,omitempty"`

	BeyondPerMinute int `json:"beyond_per_minute,omitempty"`
}

// EvidenceHash returns the SHA-256, in hex, of the canonical JSON of e: what an
// approval signs. Equal evidence has equal hashes in every process.
func EvidenceHash(e locksteward.Evidence) string {
	// Marshalling strings and integers cannot fail.
	raw, _ := json.Marshal(canonical{
		Version: 1, Target: e.Target, DB: e.DB, Key: base64.StdEncoding.EncodeToString([]byte(e.Key)),
		Class: e.Class, Library: e.Library, Type: e.Type, Identity: string(e.Identity),
		TokenDigest: e.TokenDigest, ExpireAt: e.ExpireAt, Count: e.Count,
		Holder:  []string{e.Holder.App, e.Holder.Host, fmt.Sprint(e.Holder.PID), e.Holder.Session, e.Holder.Instance},
		ClaimID: e.ClaimID, Fence: e.Fence, Findings: append([]string{}, e.Findings...),
		At:    e.At.UTC().Format(time.RFC3339Nano),
		Proof: string(e.Proof), Policy: e.Policy, Act: string(e.Act), HolderAlive: e.HolderAlive,
		Placeholder: int64(e.Placeholder), Undo: int64(e.Undo), Of: e.Of, Bundle: e.Bundle, BreakGlass: e.BreakGlass, SharedToken: e.SharedToken,
		BeyondPerMinute: e.BeyondPerMinute,
	})
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// freeze returns what a request keeps of a lock. Foreign text is made valid
// UTF-8 here, once, so that it is the same after the store, JSON and the hash.
func freeze(lock locksteward.Lock, firing []string) locksteward.Evidence {
	findings := make([]string, 0, len(firing))
	for _, rule := range firing {
		findings = append(findings, text(rule))
	}
	slices.Sort(findings)
	e := locksteward.Evidence{
		Target: lock.Target, DB: lock.DB, Key: lock.Key, Class: lock.Class, Library: lock.Library, Type: lock.Type,
		Identity: lock.Identity, TokenDigest: lock.TokenDigest, ExpireAt: lock.ExpireAt, Count: lock.Count,
		Holder: locksteward.Holder{
			App: text(lock.Holder.App), Host: text(lock.Holder.Host), PID: lock.Holder.PID,
			Session: text(lock.Holder.Session), Instance: text(lock.Holder.Instance),
		},
		Fence: lock.Fence, Findings: slices.Compact(findings), At: lock.At.UTC(), SharedToken: lock.SharedToken,
	}
	if lock.Claim != nil {
		e.ClaimID = text(lock.Claim.ID)
	}
	return e
}

func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// PolicyHash returns the SHA-256, in hex, of the class's policy as a request
// freezes it: what makes a lock dead and who decides.
func PolicyHash(c class.Class) string {
	raw, _ := json.Marshal(c) // texts and numbers
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// BundleHash returns the SHA-256, in hex, of the ids and evidence hashes of the
// requests of a bundle in their order: what one approval of all of them signs.
func BundleHash(requests []locksteward.Request) string {
	h := sha256.New()
	for _, r := range requests {
		fmt.Fprintf(h, "%s %s\n", r.ID, r.EvidenceHash)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// intact says whether a request is still the one that was decided on: its
// evidence has the hash that it was stored with, and every approval signed it.
func intact(r locksteward.Request) bool {
	if EvidenceHash(r.Evidence) != r.EvidenceHash {
		return false
	}
	for _, d := range r.Decisions {
		if d.Approve && d.EvidenceHash != r.EvidenceHash {
			return false
		}
	}
	return true
}

// sameHold says whether lock may still be the hold that a request was about,
// renewed or not.
func sameHold(was locksteward.Evidence, lock locksteward.Lock) bool {
	is := freeze(lock, nil)
	if was.Type != is.Type || was.TokenDigest != is.TokenDigest ||
		was.ClaimID != "" && is.ClaimID != "" && was.ClaimID != is.ClaimID {
		return false
	}
	// The same bytes again may be another hold: history knows whether the key
	// was seen away or started anew since.
	return lock.History.FirstSeen.IsZero() || !lock.History.FirstSeen.After(was.At)
}
