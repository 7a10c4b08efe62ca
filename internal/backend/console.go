package backend

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/cluster/remote"
	"github.com/locksteward/locksteward/internal/lockstore"
	"github.com/locksteward/locksteward/store"
)

// Lock reads one lock from Redis now.
func (b *Backend) Lock(ctx context.Context, target string, db int, key string) (locksteward.Lock, error) {
	return forwardRead(ctx, b, callLock, lockInput{Target: target, DB: db, Key: key})
}

func (b *Backend) lock(ctx context.Context, target string, db int, key string) (locksteward.Lock, error) {
	w, err := b.deps.Targets.Get(target)
	if err != nil {
		return locksteward.Lock{}, err
	}
	if err := w.OwnDB(db); err != nil {
		return locksteward.Lock{}, err
	}
	return w.Read(ctx, key)
}

// stored gives the person who asked the reason why the store could not be used.
// Its sentences are made for people, and may say that a release was carried out
// and only not written down.
func stored(err error) error {
	if _, ok := errors.AsType[*store.Error](err); ok && api.ProblemFor(err).Code == api.CodeInternal {
		return api.NewProblem(api.CodeUnavailable, err.Error())
	}
	return err
}

// Explain says what each rule makes of a lock; nothing if the replica that knows does
// not answer.
func (b *Backend) Explain(l locksteward.Lock, lang string) []api.Verdict {
	ctx, cancel := context.WithTimeout(context.Background(), remote.Timeout)
	defer cancel()
	out, err := forwardRead(ctx, b, callExplain, explainInput{l, lang})
	if err != nil {
		b.deps.Log.Warn("what the rules make of a lock is not known", zap.String("target", l.Target), zap.Error(err))
	}
	return out.V
}

func (b *Backend) explain(l locksteward.Lock, lang string) []api.Verdict {
	var out []api.Verdict
	for _, v := range b.deps.Engine.Explain(l) {
		out = append(out, api.NewVerdict(v.Rule, string(v.Result), v.Reason, v.Finding, lang))
	}
	return out
}

// Targets are the targets with their health, in the order of the configuration.
func (b *Backend) Targets() []api.Target {
	cfg := b.deps.Targets.Now().Config.Targets
	own := b.OwnTargets()
	out := make([]api.Target, 0, len(cfg))
	for _, t := range cfg {
		n := slices.IndexFunc(own, func(o api.Target) bool { return o.Name == t.Name })
		if n >= 0 {
			out = append(out, own[n])
			continue
		}
		there := Unseen(t, "it is not watched")
		if b.deps.Remote != nil {
			there = b.deps.Remote.View(t.Name)
		}
		out = append(out, there)
	}
	return out
}

// Unseen returns a target of which only the configuration is known.
func Unseen(t config.Target, why string) api.Target {
	out := api.Target{Name: t.Name, Nodes: []api.Node{}, Reason: why}
	if a, err := lockstore.Parse(t.URL); err == nil {
		out.DB, out.Mode = a.DB, string(a.Mode)
	}
	return out
}

// OwnTargets are those that this replica works on.
func (b *Backend) OwnTargets() []api.Target {
	now := b.deps.Targets.Now()
	var out []api.Target
	for _, t := range now.Config.Targets {
		w, ok := now.Watched[t.Name]
		if !ok {
			continue
		}
		target := w.FullView()
		if b.deps.Member != nil {
			target.Replica = b.deps.Member.Self().Name
		}
		target.ReleaseEnabled = b.deps.Releases.Enabled(t.Name)
		out = append(out, target)
	}
	return out
}

// Classes are the classes in the order they match, the default last.
func (b *Backend) Classes() []api.Class {
	classes := b.deps.Targets.Now().Classes
	all := classes.All()
	if c, ok := classes.Get(class.Default); ok {
		all = append(all, c)
	}
	out := make([]api.Class, 0, len(all))
	for _, c := range all {
		v := classView(c)
		// Of replicas none knows the locks of all targets.
		if matched, ok := b.deps.Matched(c.Name); ok && len(c.Match) > 0 && b.deps.Member == nil {
			v.Matched = &matched
		}
		out = append(out, v)
	}
	return out
}

// classView is a class with its defaults filled in.
func classView(c class.Class) api.Class {
	out := api.Class{
		Class: c.Name, Match: append([]string{}, c.Match...), Team: c.Team, RunbookURL: c.RunbookURL,
		TTL: string(c.TTL), MaxTTLMs: c.MaxTTLOrDefault().Milliseconds(), DeadWhen: append([]string{}, c.DeadWhen...),
		Release: string(c.ReleaseOrDefault()), Approvals: c.ApprovalsOrDefault(), SelfApproval: string(c.SelfApprovalOrDefault()),
	}
	out.MaxFailures = c.MaxFailuresOrDefault()
	for _, limit := range []struct {
		to   **int64
		from time.Duration
	}{{&out.ExpectMs, c.Expect}, {&out.WarnTTLBelowMs, c.WarnTTLBelow}, {&out.MaxWaitMs, c.MaxWait}} {
		if limit.from > 0 {
			*limit.to = new(limit.from.Milliseconds())
		}
	}
	return out
}
