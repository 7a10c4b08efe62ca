package agent

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/clockcheck"
	"github.com/locksteward/locksteward/internal/connect"
	"github.com/locksteward/locksteward/internal/liveness"
	"github.com/locksteward/locksteward/internal/report"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/store"
)

// watched is one target being watched.
type watched struct {
	agent   *Agent
	log     *zap.Logger
	cfg     config.Target
	target  locksteward.Target
	conn    *connect.Conn
	scanner *scanner.Scanner
	began   time.Time // by our clock
	holds   *report.Recorder

	cancel context.CancelFunc
	done   chan struct{}

	// mu orders what is concluded from the target: sweeps and rechecks are
	// judged one after the other, in the order they were read.
	mu         sync.Mutex
	throttled  map[scanner.Reason]time.Duration
	condition  health   // as last logged; "" before the first sweep
	unshown    bool     // findings changed and the metrics do not say so yet
	memories   memories // see remember
	firstSweep firstSweep
	behind     int                        // changes of findings that the store does not have: see keep
	unsaved    []locksteward.FindingEvent // events that the store does not have
	recalled   bool                       // the findings of the last run are in the engine: see recall
	whole      bool                       // the store has had all findings since the start
	again      time.Time                  // not before it does the store get them
	fenced     bool                       // the store said that another replica has the lease

	rightsAsked bool // see checkRights

	// down says whether the last sweep that ended found the target down; nil before one
	// ended. That it answers again says nothing yet of what was found on it.
	down atomic.Pointer[bool]

	proposals proposals

	// restored says that what the store knows of the target was taken back, or could not be.
	restored atomic.Bool

	// calls are those to the store under mu: see package liveness.
	calls liveness.Calls

	// lost says that another replica has the lease: nothing is written any more.
	lost atomic.Bool

	sweeps sweepTimes

	clock clockcheck.Offset // of the server

	// remembers says that histories of its locks were stored.
	remembers bool

	// shown guards last, what the console shows; mu may be held for long.
	shown sync.Mutex
	last  api.Swept

	// begun guards ended: after it is set nothing more begins in the background.
	begun    sync.Mutex
	ended    bool
	rechecks sync.WaitGroup
	waiting  chan struct{} // holds one token while a recheck waits
}

// newWatched prepares a target without any I/O to it, and settles where it leads.
func (a *Agent) newWatched(ctx context.Context, t config.Target, classes *class.Set) (*watched, error) {
	w, err := a.prepareWatched(ctx, t, classes)
	if err != nil {
		return nil, err
	}
	if err := a.reconcileTargets(ctx, map[string]*watched{t.Name: w}); err != nil {
		return nil, errors.Join(err, w.conn.Close())
	}
	return w, nil
}

// prepareWatched is newWatched that writes nothing; reconcileTargets comes after it.
func (a *Agent) prepareWatched(ctx context.Context, t config.Target, classes *class.Set) (*watched, error) {
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
	var w *watched // before anything is read
	s, err := scanner.New(a.log, target, conn, classes, a.digest, t.Scan, scanner.Options{
		History: a.store, Facts: a.store, Hosts: &a.hosts,
		Found:  func(ctx context.Context, update locksteward.Update) { w.sighted(ctx, update) },
		Paused: func(paused bool) { a.exporter.SetPaused(t.Name, paused) },
		Placeholder: func(key, requestID string) bool {
			return a.releases.Placeholder(t.Name, target.DB, key, requestID)
		},
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("target %q: %w", t.Name, err), conn.Close())
	}
	move, err := a.moveOf(ctx, t)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("target %q: where it led before: %w", t.Name, err), conn.Close())
	}
	// Histories are there before anybody can ask: an age must not restart at zero
	// because the agent did, not even until the first sweep.
	rows, err := a.store.LoadHistory(ctx, t.Name)
	if errors.Is(err, store.ErrDamaged) {
		log.Error("since when locks are held cannot be read: ages begin anew", zap.Error(err))
	} else if err != nil {
		return nil, errors.Join(fmt.Errorf("target %q: since when its locks are held: %w", t.Name, err), conn.Close())
	}
	if move.elsewhere {
		rows = nil // of locks that are not there: reconcileTarget forgets them
	}
	s.Restore(rows)
	w = &watched{
		agent: a, log: log, cfg: t, target: target, conn: conn, scanner: s, began: time.Now(), holds: report.NewRecorder(t.Name, nil),
		memories: remembered(rows, classes), remembers: len(rows) > 0,
		done: make(chan struct{}), throttled: map[scanner.Reason]time.Duration{}, waiting: make(chan struct{}, 1),
		proposals: proposals{fresh: make(chan struct{}, 1)},
	}
	return w, nil
}

// same says whether a reloaded configuration leaves the target as it is.
func (w *watched) same(t config.Target) bool { return reflect.DeepEqual(w.cfg, t) }

// start runs the target until stop, or until ctx ends.
func (w *watched) start(ctx context.Context) {
	ctx, w.cancel = context.WithCancel(ctx)
	w.sweeps.begin(time.Now())
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

// hangUp ends the target's connections with it: nothing comes over them, and what waits
// for an answer would keep the next replica waiting too.
func (w *watched) hangUp() {
	w.cancel()
	if err := w.conn.Close(); err != nil {
		w.log.Debug("connections did not close", zap.Error(err))
	}
}

func (w *watched) run(ctx context.Context) {
	w.begin(ctx)
	w.background(func() { w.keeping(ctx) })
	w.background(func() { w.proposing(ctx) })
	w.background(func() { w.rereading(ctx) })
	w.watch(ctx)
	if err := w.scanner.Run(ctx, w.swept); err != nil {
		w.log.Error("the target is watched no longer", zap.Error(err))
	}
	w.begun.Lock()
	w.ended = true
	w.begun.Unlock()
	w.rechecks.Wait()
	if !w.lost.Load() {
		w.catchUp(context.WithoutCancel(ctx))
		w.saveHolds(ctx)
	}
	if err := w.conn.Close(); err != nil {
		w.log.Warn("connections did not close", zap.Error(err))
	}
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
