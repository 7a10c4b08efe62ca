// Package backend is what the console and the API show and change: locks, targets, classes, rules, reports, requests, the audit
// trail, notifications and sessions, of all replicas.
//
// # Guarantees
//
//   - What is asked about one target is answered by the replica that works on it; what is asked about all is put together
//     from the answers of all replicas.
//   - While the store cannot be used, callers get an error with the reason.
//
// # Not guaranteed
//
//   - A list is complete while a replica does not answer: its targets are missing, and say so.
//
// # Concurrency
//
// [Backend] is safe for concurrent use. It starts no goroutine.
//
// # Failure
//
// A call that another replica does not answer is an error that says what to do.
package backend

import (
	"context"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/alert"
	"github.com/locksteward/locksteward/console"
	"github.com/locksteward/locksteward/internal/audit"
	"github.com/locksteward/locksteward/internal/cluster"
	"github.com/locksteward/locksteward/internal/cluster/remote"
	"github.com/locksteward/locksteward/internal/targets"
	"github.com/locksteward/locksteward/release"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/store"
)

// Deps is what a [Backend] reads from and hands decisions to.
type Deps struct {
	Log      *zap.Logger
	Store    *store.Store
	Targets  *targets.Set
	Engine   *rules.Engine
	Releases *release.Service
	Resolved *targets.Resolved
	Alerts   Receivers
	Trail    *audit.Trail
	// Member, Router and Remote are nil if the store is a file.
	Member *cluster.Member
	Router *cluster.Router
	Remote *remote.Targets
	// Matched reports whether a lock of a class was seen since the start; not ok while that is not
	// known.
	Matched func(class string) (matched, ok bool)
	// CountRequests has the metrics show how many requests there are.
	CountRequests func(context.Context)
}

// Receivers is what is known of the receivers of notifications.
type Receivers interface {
	Receivers() []alert.ReceiverState
	Test(ctx context.Context, receiver, by string) error
}

// Backend serves the console and the API. Make one with [New].
type Backend struct {
	deps  Deps
	fired fired
}

// New returns a backend.
func New(deps Deps) *Backend { return &Backend{deps: deps} }

// Console is what the console is made of; reloader and silences are the caller's.
func (b *Backend) Console(reloader console.Reloader, silences console.Silences) console.Deps {
	return console.Deps{
		Locks: b, Findings: b, Targets: b, Graphs: b, Pauser: b, Reports: b, History: b,
		Requests: requests{b, b.deps.Releases}, Releases: requests{b, b.deps.Releases}, ReleasePause: releasePause{b.deps.Releases}, Advisor: releaseAdvisor{b},
		Audit: trail{b.deps.Store, b.deps.Trail}, Sessions: sessions{b.deps.Store}, Notifications: notifications{b},
		Reloader: reloader, Silences: silences,
	}
}

// Findings returns the findings of all targets, in any order. The slice is the caller's.
func (b *Backend) Findings() []locksteward.Finding {
	out := b.deps.Engine.Findings()
	if b.deps.Remote != nil {
		out = append(out, b.deps.Remote.Findings()...)
	}
	return out
}
