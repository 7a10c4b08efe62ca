package agent

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/alert"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/connect"
	"github.com/locksteward/locksteward/internal/report"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/store"
)

// recheckSlack is added to the wait of a recheck, so that the second look is
// never a moment too early by the server's clock.
const recheckSlack = 50 * time.Millisecond

// watched is one target being watched.
type watched struct {
	agent   *Agent
	log     *zap.Logger
	cfg     config.Target
	target  locksteward.Target
	conn    *connect.Conn
	scanner *scanner.Scanner
	holds   *report.Recorder

	cancel context.CancelFunc
	done   chan struct{}

	// mu orders what is concluded from the target: sweeps and rechecks are
	// judged one after the other, in the order they were read.
	mu        sync.Mutex
	throttled map[scanner.Reason]time.Duration
	condition health          // as last logged; "" before the first sweep
	unshown   bool            // findings changed and the metrics do not say so yet
	proposed  map[string]bool // firing findings, each with its hold: asked and answered
	dead      map[string]bool // the same for expressions of dead_when
	memories  memories        // see remember
	behind    int             // changes of findings that the store does not have: see keep
	untold    []alert.Message // about them

	// shown guards last, what the console shows; mu may be held for long.
	shown sync.Mutex
	last  api.Swept

	// begun guards ended: after it is set nothing more begins in the background.
	begun    sync.Mutex
	ended    bool
	rechecks sync.WaitGroup
	waiting  chan struct{} // holds one token while a recheck waits
}

// newWatched prepares a target without any I/O to it.
func (a *Agent) newWatched(ctx context.Context, t config.Target, classes *class.Set) (*watched, error) {
	cc, err := t.Connect()
	if err != nil {
		return nil, err
	}
	conn, err := connect.Open(cc)
	if err != nil {
		return nil, fmt.Errorf("target %q: %w", t.Name, err)
	}
	target := locksteward.Target{Name: t.Name, Mode: conn.Mode(), DB: conn.DB()}
	log := a.log.With(zap.String("target", t.Name))
	s, err := scanner.New(a.log, target, conn, classes, a.digest, t.Scan, scanner.Options{
		History: a.store, Facts: a.store,
		Paused: func(paused bool) { a.exporter.SetPaused(t.Name, paused) },
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("target %q: %w", t.Name, err), conn.Close())
	}
	// Histories are there before anybody can ask: an age must not restart at zero
	// because the agent did, not even until the first sweep.
	rows, err := a.store.LoadHistory(ctx, t.Name)
	if err != nil {
		log.Error("histories are not known: ages begin anew", zap.Error(err))
	}
	s.Restore(rows)
	w := &watched{
		agent: a, log: log, cfg: t, target: target, conn: conn, scanner: s, holds: report.NewRecorder(t.Name, nil),
		memories: remembered(rows, classes),
		done:     make(chan struct{}), throttled: map[scanner.Reason]time.Duration{}, waiting: make(chan struct{}, 1),
	}
	return w, nil
}

// same says whether a reloaded configuration leaves the target as it is.
func (w *watched) same(t config.Target) bool { return reflect.DeepEqual(w.cfg, t) }

// start runs the target until stop, or until ctx ends.
func (w *watched) start(ctx context.Context) {
	ctx, w.cancel = context.WithCancel(ctx)
	go func() {
		defer close(w.done)
		w.run(ctx)
	}()
}

// stop ends the target and returns when nothing of it runs.
func (w *watched) stop() {
	w.cancel()
	<-w.done
}

func (w *watched) run(ctx context.Context) {
	findings, err := w.agent.store.LoadFindings(ctx, w.target.Name)
	if err != nil {
		w.log.Error("findings of the last run are not known: they may be told again", zap.Error(err))
	}
	w.agent.engine.Restore(findings)
	w.memories.markAll(findings)
	w.restoreOrders(ctx)
	w.restoreHolds(ctx)
	w.background(func() { w.keeping(ctx) })
	w.watch(ctx)
	if err := w.scanner.Run(ctx, w.swept); err != nil {
		w.log.Error("the target is watched no longer", zap.Error(err))
	}
	w.begun.Lock()
	w.ended = true
	w.begun.Unlock()
	w.rechecks.Wait()
	w.catchUp(context.WithoutCancel(ctx))
	w.saveHolds(ctx)
	if err := w.conn.Close(); err != nil {
		w.log.Warn("connections did not close", zap.Error(err))
	}
}

// swept takes in one sweep; the scanner calls it, one sweep at a time.
func (w *watched) swept(ctx context.Context, sweep locksteward.Sweep) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.agent
	transitions := a.engine.Evaluate(sweep)
	a.exporter.ObserveSweep(sweep)
	defer a.console.Touch()
	w.holds.Take(sweep)
	w.remember(sweep, transitions, false)
	a.exporter.SetTarget(w.scanner.State())
	for reason, total := range w.scanner.Stats().Throttled {
		a.exporter.AddThrottled(w.target.Name, string(reason), total-w.throttled[reason])
		w.throttled[reason] = total
	}
	w.logSweep(sweep)
	w.shown.Lock()
	w.last = api.NewSwept(sweep)
	w.shown.Unlock()
	w.publish(ctx, transitions)
	w.saveOrders(ctx, sweep)
	w.proposeDead(ctx, sweep)
	w.releaseDead(ctx, sweep)
	w.lookAgain(sweep)
	w.recheckLater(ctx)
}

// logSweep logs each sweep at debug level, and at a level that is seen when the
// target comes, goes, or is not read in full any more.
func (w *watched) logSweep(sweep locksteward.Sweep) {
	fields := []zap.Field{
		zap.Bool("complete", sweep.Complete()), zap.Int64("keys", sweep.Keys()), zap.Int("locks", sweep.LockCount()),
		zap.Int("candidates", sweep.Candidates), zap.Duration("took", sweep.Duration),
	}
	state := w.scanner.State()
	switch now := condition(state, sweep); {
	case now == w.condition:
		w.log.Debug("sweep ended", fields...)
	case now == up:
		w.log.Info("target is up", fields...)
		w.condition = now
	default:
		w.log.Warn("target is "+string(now), append(fields, zap.String("reason", state.Reason))...)
		w.condition = now
	}
}

// health is what the log says of a target.
type health string

const (
	up      health = "up"
	partial health = "read in part"
	down    health = "down"
)

func condition(state locksteward.TargetState, sweep locksteward.Sweep) health {
	switch {
	case !state.Up:
		return down
	case !sweep.Complete():
		return partial
	default:
		return up
	}
}

// recheckLater reads the locks again that may have no TTL or be in a deadlock, once
// the wait of the rules is over and well before the next sweep.
func (w *watched) recheckLater(ctx context.Context) {
	select {
	case w.waiting <- struct{}{}:
	default:
		return // one waits already and will see these too
	}
	if len(w.pendingLocks()) == 0 {
		<-w.waiting
		return
	}
	w.background(func() {
		select {
		case <-ctx.Done():
			<-w.waiting
			return
		case <-time.After(rules.RecheckAfter + recheckSlack):
		}
		<-w.waiting
		w.recheck(ctx)
	})
}

// background runs work that ends before the target does, unless the target is
// ending already.
func (w *watched) background(work func()) {
	w.begun.Lock()
	defer w.begun.Unlock()
	if !w.ended {
		w.rechecks.Go(work)
	}
}

func (w *watched) recheck(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.look(ctx, w.pendingLocks())
}

// recheckOne reads one lock again at once: it was released, and nobody should
// wait for the next sweep to see that.
func (w *watched) recheckOne(ctx context.Context, db int, key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l, ok := w.scanner.Table().Get(db, key); ok {
		w.look(ctx, []locksteward.Lock{l})
	}
}

// look judges a direct read of locks. The caller holds w.mu.
func (w *watched) look(ctx context.Context, locks []locksteward.Lock) {
	if len(locks) == 0 {
		return
	}
	sweep, err := w.scanner.Recheck(ctx, locks)
	if err != nil && ctx.Err() == nil {
		w.log.Warn("locks could not be read again", zap.Error(err))
	}
	transitions := w.agent.engine.EvaluateDirect(sweep)
	w.agent.exporter.ObserveRecheck(sweep)
	defer w.agent.console.Touch()
	w.holds.Take(sweep)
	w.remember(sweep, transitions, false)
	w.publish(ctx, transitions)
}

// pendingLocks are the known locks of which a second look decides something: those
// on which ttl/none is pending, and those of a wait/cycle that was seen once.
func (w *watched) pendingLocks() []locksteward.Lock {
	var out []locksteward.Lock
	for _, due := range w.agent.engine.Due(w.target.Name) {
		if l, ok := w.scanner.Table().Get(due.DB, due.Key); ok {
			out = append(out, l)
		}
	}
	return out
}

// publish tells everybody what changed: people through the store, so that what
// they were told of is known after a crash. The caller holds w.mu.
func (w *watched) publish(ctx context.Context, transitions []locksteward.Transition) {
	a := w.agent
	mine := a.findingsOf(w.target.Name)
	a.exporter.SetFindings(w.target.Name, mine)
	if len(transitions) > 0 || slices.ContainsFunc(mine, pending) {
		w.keep(ctx, w.announce(transitions), func(ctx context.Context, told ...store.Message) error {
			return a.store.SaveFindings(ctx, w.target.Name, mine, told...)
		})
	}
	w.proposeAll(ctx, mine)
}

// proposeAll asks once for the release of each lock that a rule of its class
// calls dead. What could not be asked, since the store was full for instance, is
// asked again with the next sweep. The caller holds w.mu.
func (w *watched) proposeAll(ctx context.Context, findings []locksteward.Finding) {
	if w.behind > 0 {
		return
	}
	firing := map[string]bool{}
	for _, f := range findings {
		if id, ok := w.question(f); ok {
			firing[id] = w.proposed[id] || w.ask(ctx, f)
		}
	}
	w.proposed = firing
}

// question names what is asked about a finding that fires on a known lock:
// another hold under the same key is another question.
func (w *watched) question(f locksteward.Finding) (id string, ok bool) {
	if f.Status != locksteward.StatusFiring || f.Key == "" {
		return "", false
	}
	l, ok := w.scanner.Table().Get(f.DB, f.Key)
	return f.Fingerprint() + l.TokenDigest + l.History.FirstSeen.String(), ok
}

// ask proposes the release of one lock. After a restart or failover nobody is
// called dead for one longest lease.
func (w *watched) ask(ctx context.Context, f locksteward.Finding) bool {
	l, ok := w.scanner.Table().Get(f.DB, f.Key)
	if !ok {
		return false
	}
	_, _, paused := w.agent.engine.Paused(w.target.Name, l.At)
	return !paused && w.agent.propose(ctx, w, f)
}

func pending(f locksteward.Finding) bool { return f.Status == locksteward.StatusPending }
