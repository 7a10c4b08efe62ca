package release

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// What the audit trail calls the acts of this package.
const (
	ActionRequest   = "release.request"
	ActionPropose   = "release.propose"
	ActionApprove   = "release.approve"
	ActionDeny      = "release.deny"
	ActionExecute   = "release.execute" // twice: outcome "intent" before the act, the final state after it
	ActionExpire    = "release.expire"
	ActionSupersede = "release.supersede"

	ActionUndo        = "release.undo"
	ActionLift        = "release.lift"
	ActionBreakGlass  = "release.break_glass"
	ActionRemind      = "release.remind"
	ActionResurrected = "release.resurrected"
	ActionBreaker     = "release.breaker"
	ActionPause       = "release.pause"
	ActionResume      = "release.resume"
	ActionPreview     = "release.preview" // only where it was refused
)

// Outcomes of entries beside the states of a request.
const (
	OutcomeIntent  = "intent"
	OutcomeRefused = "refused"

	OutcomeResurrected = "resurrected"
)

// detail is the facts of an entry about a request. It holds digests, no tokens.
type detail struct {
	EvidenceHash string   `json:"evidence_hash,omitempty"`
	DB           int      `json:"db,omitempty"`
	Class        string   `json:"class,omitempty"`
	Library      string   `json:"library,omitempty"`
	Identity     string   `json:"identity,omitempty"`
	WeakIdentity bool     `json:"weak_identity,omitempty"`
	TokenDigest  string   `json:"token_digest,omitempty"`
	ExpireAt     int64    `json:"expire_at,omitempty"`
	Findings     []string `json:"findings,omitempty"`
	Sentence     string   `json:"sentence,omitempty"`
	// ConfirmedBy is in the outcomes of executions, and of those since there is one.
	ConfirmedBy  source.Confirmation `json:"confirmed_by,omitempty"`
	Differences  []string            `json:"differences,omitempty"`
	WaitersWoken int64               `json:"waiters_woken,omitempty"`
	Why          string              `json:"why,omitempty"`
	By           string              `json:"by,omitempty"`
	Act          string              `json:"act,omitempty"`
	Of           string              `json:"of,omitempty"`
	HolderAlive  bool                `json:"holder_alive,omitempty"`
	// BeyondPerMinute is why one approval more is needed.
	BeyondPerMinute int    `json:"beyond_per_minute,omitempty"`
	Proof           string `json:"proof,omitempty"`
	PlaceholderMs   int64  `json:"placeholder_ms,omitempty"`
	// KeyBytes is the length of the key where the entry has only its beginning.
	KeyBytes int `json:"key_bytes,omitempty"`
}

// maxRefusedKey is how much of a key a refusal keeps: a client with a token, of any
// role, can be refused as often as they like, and the trail is kept for ever.
const maxRefusedKey = 1024

// json encodes d; strings and numbers cannot fail to.
func (d detail) json() json.RawMessage {
	raw, _ := json.Marshal(d)
	return raw
}

// entry is a line of the audit trail about a request.
func entry(at time.Time, actor, action string, r locksteward.Request, reason string, d detail) locksteward.Entry {
	return locksteward.Entry{
		At: at, Actor: actor, Action: action, Target: r.Evidence.Target, Key: r.Evidence.Key, Subject: r.ID,
		Reason: reason, Outcome: string(r.State), Detail: d.json(),
	}
}

// created is the detail of a new request: all that approvals will sign.
func created(r locksteward.Request) detail {
	e := r.Evidence
	return detail{
		EvidenceHash: r.EvidenceHash, DB: e.DB, Class: e.Class, Library: e.Library, Identity: string(e.Identity), WeakIdentity: e.WeakIdentity(),
		TokenDigest: e.TokenDigest, ExpireAt: e.ExpireAt, Findings: e.Findings,
		Act: string(e.Act), Of: e.Of, HolderAlive: e.HolderAlive, BeyondPerMinute: e.BeyondPerMinute, Proof: string(e.Proof), PlaceholderMs: e.Placeholder.Milliseconds(),
	}
}

// refuse writes a refusal by policy to the audit trail and returns err. Other
// errors are returned as they are: a typing mistake is no event. A refusal that
// cannot be written down stays a refusal and says so.
func (s *Service) refuse(ctx context.Context, actor Actor, action, target, key, subject, reason string, err error) error {
	if !errors.Is(err, locksteward.ErrRefused) {
		return err
	}
	// What a stranger may have typed is cut to what an entry may hold.
	e := locksteward.Entry{
		At: s.now(), Actor: clip(actor.Name), Action: action, Target: clip(target), Key: key, Subject: clip(subject),
		Reason: clip(reason), Outcome: OutcomeRefused,
	}
	d := detail{Why: err.Error()}
	if len(key) > maxRefusedKey {
		e.Key, d.KeyBytes = key[:maxRefusedKey], len(key)
	}
	// The reason may name what was typed, too.
	if len(d.Why) > maxText+4*maxRefusedKey {
		d.Why = text(d.Why[:maxText+4*maxRefusedKey])
	}
	e.Detail = d.json()
	// The caller may be gone already; the attempt is to be written all the same.
	if aerr := s.store.AppendEntries(context.WithoutCancel(ctx), e); aerr != nil {
		return errors.Join(err, aerr)
	}
	return err
}

func clip(s string) string {
	if len(s) > maxText {
		s = s[:maxText]
	}
	return text(s)
}
