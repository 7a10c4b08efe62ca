// Package heartbeat tells a receiver outside that the agent sweeps, for as long as it does: the receiver raises the
// alarm when heartbeats stop. Heartbeats are neither stored nor repeated.
package heartbeat

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/alert"
	"github.com/locksteward/locksteward/internal/credfile"
	"github.com/locksteward/locksteward/internal/liveness"
	"github.com/locksteward/locksteward/internal/reload"
)

// checkEvery is how often a Sender checks whether sweeps are missing.
const checkEvery = time.Second

// Status is the state of the sweeps of all targets.
type Status struct {
	Stale  map[string]bool // by target: a complete sweep is overdue
	Swept  bool            // each target was swept completely since the start
	Muted  bool            // another replica sends the heartbeats
	Up     int             // targets that answer
	Oldest time.Time       // end of the oldest of the targets' last complete sweeps
}

// Overdue returns the sorted names of the targets whose complete sweeps are overdue.
func (s Status) Overdue() []string {
	var out []string
	for name, stale := range s.Stale {
		if stale {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func (s Status) age(now time.Time) float64 {
	if s.Oldest.IsZero() {
		return 0
	}
	return max(0, now.Sub(s.Oldest)).Round(time.Millisecond).Seconds()
}

// Metrics shows what a Sender knows.
type Metrics interface {
	SetSweepStale(byTarget map[string]bool)
	SetHeartbeat(at time.Time)
}

// A Sender sends heartbeats.
type Sender struct {
	log     *zap.Logger
	status  func(now time.Time) Status
	metrics Metrics
	monitor *liveness.Monitor
	id      string         // of this agent, new at each start
	calls   liveness.Calls // to the receiver

	mu     sync.Mutex // guards every and caller
	every  time.Duration
	caller *alert.Caller // nil without a heartbeat in the configuration

	renewed atomic.Bool // a file of the caller was replaced

	// Only Run uses these.
	next   time.Time
	shown  map[string]bool // what the metrics show of stale targets
	quiet  bool            // logged that heartbeats stopped
	failed bool            // logged that a heartbeat failed
}

// New returns a Sender that reads the state of the sweeps from status.
func New(log *zap.Logger, status func(now time.Time) Status, metrics Metrics, monitor *liveness.Monitor) *Sender {
	var raw [8]byte
	_, _ = rand.Read(raw[:]) // never fails
	return &Sender{log: log, status: status, metrics: metrics, monitor: monitor, id: hex.EncodeToString(raw[:])}
}

// Prepare opens the receiver that a configuration names; the new one is used from Commit on.
func (s *Sender) Prepare(cfg *alert.Heartbeat) (reload.Prepared, error) {
	var caller *alert.Caller
	var every time.Duration
	if cfg != nil {
		full := cfg.WithDefaults()
		every = full.Every
		var err error
		if caller, err = full.Open(); err != nil {
			return nil, err
		}
	}
	return reload.Funcs{
		OnCommit: func() {
			s.mu.Lock()
			was := s.caller
			s.caller, s.every = caller, every
			s.mu.Unlock()
			closeCaller(was)
		},
		OnDiscard: func() { closeCaller(caller) },
	}, nil
}

func closeCaller(c *alert.Caller) {
	if c != nil {
		c.Close()
	}
}

func (s *Sender) current() (*alert.Caller, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.caller, s.every
}

// Files returns the state of the files that the receiver needs, by their keys below alert.heartbeat.
func (s *Sender) Files() []credfile.File {
	caller, _ := s.current()
	if caller == nil {
		return nil
	}
	list, renewed := caller.Files()
	if renewed {
		s.renewed.Store(true)
	}
	for i := range list {
		list[i].Key = "webhook." + list[i].Key
	}
	return list
}

// Run sends heartbeats until ctx ends.
func (s *Sender) Run(ctx context.Context) error {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	loop, remove := s.monitor.Add("heartbeat", &s.calls)
	defer remove()
	for {
		loop.Progress()
		select {
		case <-ctx.Done():
			caller, _ := s.current()
			closeCaller(caller)
			return nil
		case now := <-tick.C:
			s.check(ctx, now)
		}
	}
}

// check shows which sweeps are overdue, and sends a heartbeat if none is overdue and the time has come.
func (s *Sender) check(ctx context.Context, now time.Time) {
	status := s.status(now)
	if s.shown == nil || !maps.Equal(s.shown, status.Stale) {
		s.shown = status.Stale
		s.metrics.SetSweepStale(status.Stale)
	}
	caller, every := s.current()
	if caller == nil || status.Muted {
		s.next, s.quiet = time.Time{}, false
		return
	}
	if overdue := status.Overdue(); len(overdue) > 0 {
		if !s.quiet {
			s.log.Warn("heartbeats stop: complete sweeps are overdue", zap.Strings("targets", overdue))
		}
		s.quiet, s.next = true, time.Time{}
		return
	}
	// A reload may have shortened the interval, and a new secret is tried at once where the old one was refused.
	if renewed := s.renewed.Swap(false); s.next.After(now.Add(every)) || renewed && s.failed {
		s.next = now
	}
	if !status.Swept || now.Before(s.next) {
		return
	}
	if s.quiet {
		s.log.Info("heartbeats resume: sweeps are complete again")
		s.quiet = false
	}
	s.next = now.Add(every)
	s.send(ctx, caller, status, now)
}

func (s *Sender) send(ctx context.Context, caller *alert.Caller, status Status, now time.Time) {
	id, body, err := alert.Beat{
		At: now, Agent: s.id, Targets: alert.BeatTargets{Total: len(status.Stale), Up: status.Up}, OldestSweepSeconds: status.age(now),
	}.Encode()
	if err == nil {
		end := s.calls.Begin()
		err = caller.Post(ctx, id, body)
		end()
	}
	switch {
	case ctx.Err() != nil:
	case err != nil && !s.failed:
		s.log.Warn("a heartbeat failed; the next one is sent when it is due", zap.Error(err))
		s.failed = true
	case err != nil:
		s.log.Debug("a heartbeat failed again", zap.Error(err))
	default:
		s.metrics.SetHeartbeat(time.Now())
		if s.failed {
			s.log.Info("heartbeats arrive again")
		}
		s.failed = false
	}
}
