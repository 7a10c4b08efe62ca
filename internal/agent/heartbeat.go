package agent

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

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/alert"
	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/internal/credfile"
)

const (
	// heartLook is how often it is looked whether sweeps are missing.
	heartLook = time.Second
	// sweepSlack is how much later than its schedule a sweep may be complete, beside
	// twice what the last one took.
	sweepSlack = 5 * time.Second
)

// heart tells somebody outside that the agent sweeps, for as long as it does: silence
// is the signal. Nothing of it is kept, and nothing is repeated.
type heart struct {
	log  *zap.Logger
	show *exporter.Exporter
	id   string
	// pulse is how all targets are.
	pulse func(now time.Time) pulse

	// mu guards what a reload replaces.
	mu     sync.Mutex
	every  time.Duration
	caller *alert.Caller // nil: nobody is told

	liveness *liveness
	calls    calls // to the heartbeat's receiver

	// What follows belongs to run.
	next   time.Time
	missed map[string]bool // as shown last
	quiet  bool            // that beats stopped was logged
	failed bool            // that one did not arrive was

	// renewed says that a file of the caller was replaced.
	renewed atomic.Bool
}

// pulse is how the sweeps of all targets are.
type pulse struct {
	stale  map[string]bool // by target: complete sweeps are missing
	whole  bool            // each was swept completely since the start
	silent bool            // another replica beats
	up     int
	oldest time.Time
}

func (p pulse) missing() []string {
	var out []string
	for name, stale := range p.stale {
		if stale {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func (a *Agent) newHeart(cfg alert.Config) (*heart, error) {
	var raw [8]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return nil, err
	}
	h := &heart{log: a.log.Named("heartbeat"), show: a.exporter, id: hex.EncodeToString(raw[:]), pulse: a.pulse, liveness: a.liveness}
	apply, err := h.prepare(cfg)
	if err != nil {
		return nil, err
	}
	apply()
	return h, nil
}

// prepare reads what a configuration names and changes nothing; apply cannot fail.
func (h *heart) prepare(cfg alert.Config) (apply func(), err error) {
	var caller *alert.Caller
	var every time.Duration
	if cfg.Heartbeat != nil {
		full := cfg.Heartbeat.WithDefaults()
		every = full.Every
		if caller, err = full.Open(); err != nil {
			return nil, err
		}
	}
	return func() {
		h.mu.Lock()
		was := h.caller
		h.caller, h.every = caller, every
		h.mu.Unlock()
		if was != nil {
			was.Close()
		}
	}, nil
}

// files looks at the files of the heartbeat and says how each stands, under its key
// below alert.heartbeat.
func (h *heart) files() []credfile.File {
	h.mu.Lock()
	caller := h.caller
	h.mu.Unlock()
	if caller == nil {
		return nil
	}
	list, renewed := caller.Files()
	if renewed {
		h.renewed.Store(true)
	}
	for i := range list {
		list[i].Key = "webhook." + list[i].Key
	}
	return list
}

// run beats until ctx ends.
func (h *heart) run(ctx context.Context) error {
	tick := time.NewTicker(heartLook)
	defer tick.Stop()
	turns, forget := h.liveness.watch("heartbeat", &h.calls)
	defer forget()
	for {
		turns.turn()
		select {
		case <-ctx.Done():
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.caller != nil {
				h.caller.Close()
			}
			return nil
		case now := <-tick.C:
			h.look(ctx, now)
		}
	}
}

// look shows whether sweeps are missing, and beats if none is and it is time.
func (h *heart) look(ctx context.Context, now time.Time) {
	p := h.pulse(now)
	if h.missed == nil || !maps.Equal(h.missed, p.stale) {
		h.missed = p.stale
		h.show.SetSweepStale(p.stale)
	}
	h.mu.Lock()
	caller, every := h.caller, h.every
	h.mu.Unlock()
	if caller == nil || p.silent {
		h.next, h.quiet = time.Time{}, false
		return
	}
	if missing := p.missing(); len(missing) > 0 {
		if !h.quiet {
			h.log.Warn("heartbeats stop: complete sweeps are missing", zap.Strings("targets", missing))
		}
		h.quiet, h.next = true, time.Time{}
		return
	}
	// A reload may have shortened the time to the next one, and a new secret is worth a
	// try at once where the one before was refused.
	if renewed := h.renewed.Swap(false); h.next.After(now.Add(every)) || renewed && h.failed {
		h.next = now
	}
	if !p.whole || now.Before(h.next) {
		return
	}
	if h.quiet {
		h.log.Info("heartbeats go on: sweeps are complete again")
		h.quiet = false
	}
	h.next = now.Add(every)
	h.beat(ctx, caller, p, now)
}

func (h *heart) beat(ctx context.Context, caller *alert.Caller, p pulse, now time.Time) {
	id, body, err := alert.Beat{
		At: now, Agent: h.id, Targets: alert.BeatTargets{Total: len(p.stale), Up: p.up}, OldestSweepSeconds: p.age(now),
	}.Encode()
	if err == nil {
		end := h.calls.begin()
		err = caller.Post(ctx, id, body)
		end()
	}
	switch {
	case ctx.Err() != nil:
	case err != nil && !h.failed:
		h.log.Warn("a heartbeat did not arrive; the next one is sent when it is due", zap.Error(err))
		h.failed = true
	case err != nil:
		h.log.Debug("a heartbeat did not arrive again", zap.Error(err))
	default:
		h.show.SetHeartbeat(time.Now())
		if h.failed {
			h.log.Info("heartbeats arrive again")
		}
		h.failed = false
	}
}

func (p pulse) age(now time.Time) float64 {
	if p.oldest.IsZero() {
		return 0
	}
	return max(0, now.Sub(p.oldest)).Round(time.Millisecond).Seconds()
}

// pulse looks at all targets of the configuration.
func (a *Agent) pulse(now time.Time) pulse {
	state := a.current()
	p := pulse{stale: map[string]bool{}, whole: true, silent: !a.house.opened()}
	if a.fleet != nil && !p.silent {
		a.fleet.pulse(state.cfg.Targets, state.targets, &p)
	}
	for name, w := range state.targets {
		last, stale := w.sweeps.at(now, w.scanner.Overdue)
		p.stale[name] = stale
		p.whole = p.whole && !last.IsZero()
		if w.scanner.State().Up {
			p.up++
		}
		if p.oldest.IsZero() || last.Before(p.oldest) {
			p.oldest = last
		}
	}
	return p
}

// sweeps is when the last complete sweep of a target ended.
type sweeps struct {
	mu    sync.Mutex
	began time.Time // of the watching
	last  time.Time // zero: none yet
	took  time.Duration
}

func (s *sweeps) begin(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began = now
}

func (s *sweeps) note(sweep locksteward.Sweep, now time.Time) {
	if !sweep.Complete() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.took = now, sweep.Duration
}

// at is the last complete sweep, and whether another should have come since; overdue
// is when, by the schedule.
func (s *sweeps) at(now time.Time, overdue func(time.Time) time.Time) (last time.Time, stale bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := s.last
	if since.IsZero() {
		since = s.began
	}
	if since.IsZero() {
		return s.last, false // not watched yet
	}
	limit := overdue(since)
	return s.last, !limit.IsZero() && now.After(limit.Add(sweepSlack+2*s.took))
}
