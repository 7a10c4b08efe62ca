package targets

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/internal/liveness"
	"github.com/locksteward/locksteward/internal/lockhistory"
	"github.com/locksteward/locksteward/internal/pace"
	"github.com/locksteward/locksteward/release"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/store"
)

// Deps is what the targets work with; all of them share it.
type Deps struct {
	Log      *zap.Logger
	Engine   *rules.Engine
	Store    *store.Store
	Exporter *exporter.Exporter
	History  *lockhistory.Writer
	Liveness *liveness.Monitor
	Digest   locksteward.DigestKey
	Hosts    *pace.Hosts // what shares a machine shares an allowance
	Alerts   Alerts
	Releases Releases
	// Resolved and Executions are of all targets.
	Resolved   *Resolved
	Executions *Executions
	// Classes are the classes of this moment.
	Classes func() *class.Set
	// Touch says that pages show something else now. It must not wait.
	Touch func()
	// CountRequests has the metrics show how many requests there are.
	CountRequests func(context.Context)
}

// Alerts makes the events that receivers are notified of, and sends those that the store does not take.
type Alerts interface {
	Events(transitions []locksteward.Transition, firstSweep func(locksteward.Finding) (found bool, running time.Duration), leaseEnds func(locksteward.Finding) time.Time) []locksteward.FindingEvent
	SendFromMemory(events []locksteward.FindingEvent)
	// Unsaved, SaveFailed and Saved are about events that the store did not take at first.
	Unsaved(events []locksteward.FindingEvent) (rest []locksteward.FindingEvent, tried []locksteward.Notification)
	SaveFailed(events []locksteward.FindingEvent)
	Saved(events []locksteward.FindingEvent, tried []locksteward.Notification)
	// WakeHeld has it decided again which events are held back.
	WakeHeld(ctx context.Context)
}

// Releases is what the targets need of the release service.
type Releases interface {
	Placeholder(target string, db int, key, requestID string) bool
	Recall(ctx context.Context) error
	Propose(ctx context.Context, l locksteward.Lock, firing []string) (*locksteward.Request, error)
	Swept(ctx context.Context, target string, dead []release.Dead) ([]locksteward.Request, error)
}

// firing are the rules that fire on a lock and the expressions of its class's
// dead_when that hold for it, sorted, each once.
func firing(engine *rules.Engine, l locksteward.Lock) []string {
	rules := append(engine.Firing(l), engine.DeadWhen(l)...)
	slices.Sort(rules)
	return slices.Compact(rules)
}

// proofOf is how surely the holder of a lock is dead where holder/dead fires on it.
func proofOf(engine *rules.Engine, l locksteward.Lock) locksteward.Proof {
	for _, f := range engine.FindingsFor(l.Target, l.DB, l.Key) {
		if f.Status == locksteward.StatusFiring && f.Rule == rules.HolderDead {
			return f.Proof
		}
	}
	return ""
}
