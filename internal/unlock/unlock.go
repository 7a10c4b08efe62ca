package unlock

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/locksteward/locksteward/catalogue"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/release"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/redis/connect"
	"github.com/locksteward/locksteward/source/redis/releaser"
)

// TargetName is the target of everything here: there is one server.
const TargetName = "redis"

// Options say which lock, and which hold of it.
type Options struct {
	Connect connect.Config
	Key     string // exact bytes
	If      Condition
	// MetaPrefixes are where companions of locks may be; none is the default.
	MetaPrefixes []string
	// Actor and Reason go into the audit file.
	Actor, Reason string
	AuditFile     string
}

// Plan is what a release would do to the lock in its current state.
type Plan struct {
	// Found says whether the key exists.
	Found bool
	// Differences are what is other than the condition; with any, nothing is done.
	Differences []string
	// Refusal is why this lock is not released safely; nil if it is.
	Refusal error
	// Library, Identity and Keys are what is released.
	Library  string
	Identity locksteward.Identity
	Keys     []string

	opts     Options
	releaser source.Releaser
	request  locksteward.Request
}

// NoIdentity reports whether this hold cannot be distinguished from the next one.
func (p *Plan) NoIdentity() bool { return p.Identity == locksteward.IdentityNone }

// NewPlan reads the lock and compares it with the condition. It touches nothing.
func NewPlan(ctx context.Context, o Options) (*Plan, error) {
	conn, err := connect.Open(o.Connect)
	if err != nil {
		return nil, err
	}
	db := conn.DB()
	if err := conn.Close(); err != nil {
		return nil, err
	}
	free, err := releaser.New(releaser.Config{Connect: o.Connect, Digest: KeyOf(o.If.Salt), MetaPrefixes: o.MetaPrefixes})
	if err != nil {
		return nil, err
	}
	p := &Plan{opts: o, releaser: free, request: locksteward.Request{
		ID: "u-" + strings.ToLower(rand.Text()),
		Evidence: locksteward.Evidence{
			Target: TargetName, DB: db, Key: o.Key, Type: o.If.Type, TokenDigest: digestPrefix + o.If.Digest, ExpireAt: o.If.ExpireAt,
		},
		Requester: o.Actor, Reason: o.Reason,
	}}
	seen, err := free.Preview(ctx, p.request)
	if err != nil {
		return nil, err
	}
	if seen.MissingRights != "" && !seen.Found {
		return nil, errors.New(seen.MissingRights + "; grant what `locksteward acl` prints")
	}
	p.Found = seen.Found
	if !seen.Found {
		return p, nil
	}
	if p.Differences = o.If.differences(seen.Now); len(p.Differences) > 0 {
		return p, nil
	}
	// What the condition does not say is what stands there now: it is this hold.
	now := seen.Now
	now.Target, now.DB = TargetName, db
	p.request.Evidence = now
	if seen, err = free.Preview(ctx, p.request); err != nil {
		return nil, err
	}
	p.Found, p.Differences, p.Refusal = seen.Found, seen.Differences, seen.Refusal
	p.Library, p.Identity, p.Keys = now.Library, now.Identity, seen.Keys
	return p, nil
}

// differences are what is other than the condition, in words.
func (c Condition) differences(now locksteward.Evidence) []string {
	var out []string
	switch {
	case now.Type != c.Type:
		out = append(out, fmt.Sprintf("it is a %s now, not a %s", now.Type, c.Type))
	case now.TokenDigest != digestPrefix+c.Digest:
		out = append(out, "its value is another: somebody else holds it, or holds it anew")
	}
	if now.ExpireAt != c.ExpireAt {
		out = append(out, "its expiry is another: it was renewed, or taken anew")
	}
	return out
}

// Outcome returns what to say of an outcome, in English.
func (p *Plan) Outcome(o source.Outcome) string {
	return catalogue.Text("en", release.OutcomeMessage(p.request.Evidence, o))
}

// Execute releases the lock if it is still the hold of the plan. An error means
// that the outcome is not known, unless the intent could not be written: then
// nothing was done. The outcome is written to the audit file in either case.
func (p *Plan) Execute(ctx context.Context) (source.Outcome, error) {
	audit := auditFile{p.opts.AuditFile}
	facts := map[string]any{
		"library": p.Library, "identity": p.Identity, "if": p.opts.If.String(), "db": p.request.Evidence.DB,
	}
	detail, err := json.Marshal(facts)
	if err != nil {
		return source.Outcome{}, err
	}
	entry := locksteward.Entry{
		Actor: p.opts.Actor, Action: actionIntent, Target: TargetName, Key: p.opts.Key, Subject: p.request.ID,
		Reason: p.opts.Reason, Detail: detail,
	}
	if err := audit.append(entry); err != nil {
		return source.Outcome{}, fmt.Errorf("nothing was done: %w", err)
	}
	outcome, err := p.releaser.Release(ctx, p.request)
	if outcome.ConfirmedBy != "" {
		facts["confirmed_by"] = outcome.ConfirmedBy
		entry.Detail, _ = json.Marshal(facts) // texts and a number, as above
	}
	entry.Action = actionOutcome
	if entry.Outcome = string(outcome.State); err != nil {
		entry.Outcome = string(locksteward.RequestUnknown)
		err = fmt.Errorf("the outcome is not known: %w; the record of request %s beside the lock tells it", err, p.request.ID)
	}
	if noted := audit.append(entry); noted != nil && err == nil {
		err = fmt.Errorf("the lock is %s, but that is not in the audit file: %w", outcome.State, noted)
	}
	return outcome, err
}
