package console

import (
	"context"
	"errors"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

// Locks is what is known of the lock keys of all targets.
type Locks interface {
	// Locks returns the locks of the last sweeps in any order; the slice is the
	// caller's.
	Locks() []locksteward.Lock
	// Lock reads one lock now. The error wraps locksteward.ErrNotFound when
	// there is no such target or lock.
	Lock(ctx context.Context, target string, db int, key string) (locksteward.Lock, error)
	// Explain says what each rule makes of a lock, in lang ("en" or "zh").
	Explain(l locksteward.Lock, lang string) []api.Verdict
}

// Findings is what the rules say now.
type Findings interface {
	// Findings returns the pending and firing findings of all targets in any
	// order; the slice is the caller's.
	Findings() []locksteward.Finding
}

// Targets is the health of the targets and the policy of the classes.
type Targets interface {
	// Targets returns all targets in the order of the configuration.
	Targets() []api.Target
	// Classes returns the classes in the order they match, the default last.
	Classes() []api.Class
}

// Requests reads release requests.
type Requests interface {
	// List returns requests, newest first.
	List(ctx context.Context, filter RequestFilter) ([]locksteward.Request, error)
	// Get returns one; an unknown id is locksteward.ErrNotFound.
	Get(ctx context.Context, id string) (locksteward.Request, error)
}

// Releases changes release requests. It judges the actor's roles, and writes
// what it refuses into the audit trail. Errors wrap the sentinels of package
// locksteward.
type Releases interface {
	Request(ctx context.Context, actor Actor, in ReleaseInput) (locksteward.Request, error)
	// Approve executes the release too when the approval was the last one
	// needed; the request that it returns tells the outcome.
	Approve(ctx context.Context, actor Actor, id string, word Word) (locksteward.Request, error)
	Deny(ctx context.Context, actor Actor, id string, word Word) (locksteward.Request, error)
	// Undo puts back what a request released; Lift ends what stands in the lock's
	// place by it. Both return the request that they made, with its outcome.
	Undo(ctx context.Context, actor Actor, id, reason string) (locksteward.Request, error)
	Lift(ctx context.Context, actor Actor, id, reason string) (locksteward.Request, error)
	// DryRun says what Request would freeze and what its execution would do now;
	// Preview says it of a request that is open. Both touch nothing.
	DryRun(ctx context.Context, actor Actor, in ReleaseInput) (api.Preview, error)
	Preview(ctx context.Context, id string) (api.Preview, error)
}

// Audit reads the audit trail.
type Audit interface {
	// Entries returns the newest entries first, at most limit.
	Entries(ctx context.Context, limit int) ([]locksteward.Entry, error)
}

// Reloader reads the configuration again.
type Reloader interface {
	// Reload swaps the configuration as a whole or changes nothing. Its error is
	// shown to the admin who asked.
	Reload(ctx context.Context) error
}

// Pauser keeps the agent from asking anything of targets, and lets it again.
type Pauser interface {
	// Pause holds one target, or all of them if target is "". It returns the
	// names of those held.
	Pause(ctx context.Context, target string, p locksteward.Pause) ([]string, error)
	// Resume ends the pause of one target, or of all, and returns the names of
	// those that were paused.
	Resume(ctx context.Context, target, by string) ([]string, error)
}

// Reports is how locks were held.
type Reports interface {
	// Report covers one target, or all if it is "", and one class, or all, since a
	// time. An unknown target or class is locksteward.ErrNotFound.
	Report(ctx context.Context, target, class string, since time.Time) (api.Report, error)
}

// Actor is who asks, as the console authenticated them.
type Actor struct {
	Name  string
	Roles []string // viewer, requester, approver, admin
}

// ReleaseInput is what a person wants to be released.
type ReleaseInput struct {
	Target string
	DB     int
	Key    string // exact bytes
	Reason string
	// HolderAlive, TakeOver and LockDelay are what api.CreateRequest says of them.
	HolderAlive bool
	TakeOver    time.Duration
	LockDelay   *time.Duration
}

// Word is one person's decision.
type Word struct {
	Reason             string
	EvidenceHash       string
	ConfirmNoIdentity  bool
	ConfirmHolderAlive bool
}

// RequestFilter selects requests; zero fields select all.
type RequestFilter struct {
	States []locksteward.RequestState
	Target string
	Limit  int // always positive
}

// Deps is what the console shows and changes; all are required.
type Deps struct {
	Locks    Locks
	Findings Findings
	Targets  Targets
	Requests Requests
	Releases Releases
	Audit    Audit
	Reloader Reloader
	Pauser   Pauser
	Reports  Reports
}

func (d Deps) check() error {
	for name, missing := range map[string]bool{
		"Locks": d.Locks == nil, "Findings": d.Findings == nil, "Targets": d.Targets == nil, "Requests": d.Requests == nil,
		"Releases": d.Releases == nil, "Audit": d.Audit == nil, "Reloader": d.Reloader == nil,
		"Pauser": d.Pauser == nil, "Reports": d.Reports == nil,
	} {
		if missing {
			return errors.New("console: dependency " + name + " is missing")
		}
	}
	return nil
}
