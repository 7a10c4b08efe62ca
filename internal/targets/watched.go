package targets

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
	"github.com/locksteward/locksteward/internal/credfile"
	"github.com/locksteward/locksteward/internal/liveness"
	"github.com/locksteward/locksteward/internal/lockstore"
	"github.com/locksteward/locksteward/internal/report"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/store"
)

// Watched is one target being watched.
type Watched struct {
	deps    Deps
	log     *zap.Logger
	cfg     config.Target
	target  locksteward.Target
	conn    lockstore.Store
	scanner *scanner.Scanner
	began   time.Time // by our clock
	holds   *report.Recorder

	done chan struct{}

	turn turn
	// The fields down to rightsAsked are used with the turn alone.
	throttled   map[source.Reason]time.Duration
	condition   health   // as last logged; "" before the first sweep
	unshown     bool     // findings changed and the metrics do not say so yet
	memories    memories // see remember
	firstSweep  firstSweep
	recalled    bool // the findings of the last run are in the engine: see recall
	whole       bool // the store has had all findings since the start
	rightsAsked bool // see checkRights

	backlog backlog

	// down says whether the last sweep that ended found the target down; nil before one
	// ended. That it answers again says nothing yet of what was found on it.
	down atomic.Pointer[bool]

	proposals proposals

	// restored says that what the store knows of the target was taken back, or could not be.
	restored atomic.Bool

	// calls are those to the store in a turn: see package liveness.
	calls liveness.Calls

	// lost says that another replica has the lease: nothing is written any more.
	lost atomic.Bool

	sweeps sweepTimes

	clock clockcheck.Offset // of the server

	// reconciled says that what is stored is about where the target leads; see Reconcile.
	reconciled bool

	// remembers says that histories of its locks were stored.
	remembers bool

	// shown guards last, what the console shows.
	shown sync.Mutex
	last  api.Swept

	// begun guards cancel, stopped and ended: after stopped is set the target does not start, after ended is set nothing
	// more begins in the background.
	begun    sync.Mutex
	cancel   context.CancelFunc // nil: it was not started
	stopped  bool
	ended    bool
	rechecks sync.WaitGroup
	waiting  chan struct{} // holds one token while a recheck waits
}

// New prepares a target without any I/O to it, and reconciles what is stored of it with where it leads.
func New(ctx context.Context, t config.Target, classes *class.Set, deps Deps) (*Watched, error) {
	w, err := Prepare(ctx, t, classes, deps)
	if err != nil {
		return nil, err
	}
	if err := w.Reconcile(ctx); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// Prepare is [New] that writes nothing; [Watched.Reconcile] comes after it.
func Prepare(ctx context.Context, t config.Target, classes *class.Set, deps Deps) (*Watched, error) {
	cc, err := t.Connect()
	if err != nil {
		return nil, err
	}
	conn, err := lockstore.Open(cc)
	if err != nil {
		return nil, fmt.Errorf("target %q: %w", t.Name, err)
	}
	target := locksteward.Target{Name: t.Name, Source: string(conn.Address().Kind), Mode: conn.Topology(), DB: conn.Address().DB}
	log := deps.Log.With(zap.String("target", t.Name))
	var w *Watched // before anything is read
	src, err := conn.Source(lockstore.Options{
		Log: deps.Log, Digest: deps.Digest, Redis: t.RedisScan, Tables: t.Tables, Pace: t.Scan.Pace, Hosts: deps.Hosts,
		Placeholder: func(key, requestID string) bool {
			return deps.Releases.Placeholder(t.Name, target.DB, key, requestID)
		},
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("target %q: %w", t.Name, err), conn.Close())
	}
	s, err := scanner.New(deps.Log, target, src, classes, t.Scan, scanner.Options{
		History: deps.Store, Facts: deps.Store,
		Found:  func(ctx context.Context, update locksteward.Update) { w.sighted(ctx, update) },
		Paused: func(paused bool) { deps.Exporter.SetPaused(t.Name, paused) },
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("target %q: %w", t.Name, err), conn.Close())
	}
	move, err := deps.moveOf(ctx, t)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("target %q: where it led before: %w", t.Name, err), conn.Close())
	}
	// Histories are there before anybody can ask: an age must not restart at zero
	// because the agent did, not even until the first sweep.
	rows, err := deps.Store.LoadHistory(ctx, t.Name)
	if errors.Is(err, store.ErrDamaged) {
		log.Error("since when locks are held cannot be read: ages begin anew", zap.Error(err))
	} else if err != nil {
		return nil, errors.Join(fmt.Errorf("target %q: since when its locks are held: %w", t.Name, err), conn.Close())
	}
	if move.elsewhere {
		rows = nil // of locks that are not there: Reconcile forgets them
	}
	s.Restore(rows)
	w = &Watched{
		deps: deps, log: log, cfg: t, target: target, conn: conn, scanner: s, began: time.Now(), holds: report.NewRecorder(t.Name, nil),
		memories: remembered(rows, classes), remembers: len(rows) > 0,
		done: make(chan struct{}), turn: newTurn(), throttled: map[source.Reason]time.Duration{}, waiting: make(chan struct{}, 1),
		proposals: proposals{fresh: make(chan struct{}, 1)},
	}
	return w, nil
}

// Same says whether a reloaded configuration leaves the target as it is.
func (w *Watched) Same(t config.Target) bool { return reflect.DeepEqual(w.cfg, t) }

// Start runs the target until Stop, or until ctx ends. After Stop it does nothing.
func (w *Watched) Start(ctx context.Context) {
	w.begun.Lock()
	defer w.begun.Unlock()
	if w.stopped {
		return
	}
	ctx, w.cancel = context.WithCancel(ctx)
	w.sweeps.begin(time.Now())
	go func() {
		defer close(w.done)
		w.run(ctx)
	}()
}

// Stop ends the target and returns when nothing of it runs.
func (w *Watched) Stop() {
	w.begun.Lock()
	first, cancel := !w.stopped, w.cancel
	w.stopped = true
	w.begun.Unlock()
	switch {
	case cancel != nil:
		cancel()
		<-w.done
	case first:
		w.endBackground()
		w.closeConn()
	}
}

// HangUp ends the target's connections with it: nothing comes over them, and what waits
// for an answer would keep the next replica waiting too.
func (w *Watched) HangUp() {
	w.begun.Lock()
	cancel := w.cancel
	w.begun.Unlock()
	if cancel != nil {
		cancel()
		w.closeConn()
	}
}

func (w *Watched) closeConn() {
	if err := w.conn.Close(); err != nil {
		w.log.Debug("connections did not close", zap.Error(err))
	}
}

func (w *Watched) run(ctx context.Context) {
	reconciled := w.awaitReconciled(ctx)
	if reconciled {
		w.begin(ctx)
		w.background(func() { w.keeping(ctx) })
		w.background(func() { w.proposing(ctx) })
		w.background(func() { w.rereading(ctx) })
		w.watch(ctx)
		if err := w.scanner.Run(ctx, w.swept); err != nil {
			w.log.Error("the target is watched no longer", zap.Error(err))
		}
	}
	w.endBackground()
	if reconciled && !w.lost.Load() {
		w.catchUp(context.WithoutCancel(ctx))
		w.saveHolds(ctx)
	}
	if err := w.conn.Close(); err != nil {
		w.log.Warn("connections did not close", zap.Error(err))
	}
}

// endBackground waits for the work in the background; nothing more begins there.
func (w *Watched) endBackground() {
	w.begun.Lock()
	w.ended = true
	w.begun.Unlock()
	w.rechecks.Wait()
}

// background runs work that ends before the target does, unless the target is
// ending already.
func (w *Watched) background(work func()) {
	w.begun.Lock()
	defer w.begun.Unlock()
	if !w.ended {
		w.rechecks.Go(work)
	}
}

// Close gives back what Prepare took, if Start was never called.
func (w *Watched) Close() error { return w.conn.Close() }

// Pause keeps sweeps and the watch from asking anything.
func (w *Watched) Pause(p locksteward.Pause) { w.scanner.Pause(p) }

// Paused is the pause of the target; nil for none.
func (w *Watched) Paused() *locksteward.Pause { return w.scanner.Paused() }

// Resume ends what Pause began, and says whether there was a pause.
func (w *Watched) Resume() bool { return w.scanner.Resume() }

// SetClasses has the target follow other classes.
func (w *Watched) SetClasses(classes *class.Set) { w.scanner.SetClasses(classes) }

// Ping asks the servers of the target over the open connections.
func (w *Watched) Ping(ctx context.Context) error { return w.conn.Ping(ctx) }

// Files are the files of the target's credentials.
func (w *Watched) Files() []credfile.File { return w.conn.Files() }

// ServerCertificateEnds is when the certificate ends that a server of the target showed; false if none did.
func (w *Watched) ServerCertificateEnds() (time.Time, bool) { return w.conn.ServerCertificateEnds() }

// Lose says that another replica has the lease: nothing is written any more.
func (w *Watched) Lose() { w.lost.Store(true) }

// TakeUnsaved returns the events that the store does not have, which are nobody's to write any more.
func (w *Watched) TakeUnsaved() []locksteward.FindingEvent {
	return w.backlog.take()
}
