// Package scan is the one-off audit: one sweep of one target without
// configuration, store or agent, judged by the same rules.
//
// Run is not safe to share a result while it runs; separate runs are
// independent.
package scan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/lockstore"
	"github.com/locksteward/locksteward/internal/unlock"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source/redis"
	"github.com/locksteward/locksteward/source/redis/connect"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// TargetName returns the name of the target of a one-off scan in its findings: that of the
// kind of store that the URL names.
func TargetName(url string) string {
	if a, err := lockstore.Parse(url); err == nil {
		return string(a.Kind)
	}
	return string(lockstore.Redis) // the URL is refused later
}

// Options say what to scan.
type Options struct {
	Connect connect.Config
	// Match are globs of keys that are locks, as a configured class would say.
	Match []string
	// Observe keeps sweeping for this long, so that renewals are seen; 0 is one
	// sweep.
	Observe time.Duration
	// NoThrottle sweeps as fast as the server answers.
	NoThrottle bool
	// SweepOn is which servers are asked for the names of all keys; "" is masters.
	SweepOn redis.SweepOn
	// Progress is called five times a second with how far the sweep under way is, the zero value between two
	// sweeps; nil is nobody.
	Progress func(scanner.Progress)
	// Warn is called, before Run returns, with what the last sweep had to do without, in
	// sentences; nil is nobody.
	Warn func(sentence string)
	// Record is called with each sweep, and RecordUpdate with each direct read of some
	// locks, in their order, as the rules see them; nil is nobody. Their error ends the scan.
	Record       func(locksteward.Sweep) error
	RecordUpdate func(locksteward.Update) error
	Log          *zap.Logger
}

// Result is what one scan found.
type Result struct {
	// Sweep is the last sweep; Duration is of the first.
	Sweep    locksteward.Sweep
	Findings []locksteward.Finding
	// Salt is that of the token digests: fresh in each run, and no secret.
	Salt [16]byte
	// TooManyRights is a warning of a Redis user that may more than look, "" for none.
	TooManyRights string
}

// between is the pause between the sweeps of an observation: short enough to
// see a watchdog of a few seconds at work.
const between = time.Second

// recheckSlack is added to the wait of a recheck, so that the second look is
// never a moment too early by the server's clock.
const recheckSlack = 50 * time.Millisecond

// progressEvery is how often progress is reported.
const progressEvery = 200 * time.Millisecond

// Run scans once. An error means that nothing could be read; a sweep that was
// cut short is a result that is not Complete. When ctx ends after something was read, the
// error is its cause, and the result has what was found until then.
func Run(ctx context.Context, opts Options) (Result, error) {
	p, err := prepare(opts)
	if err != nil {
		return Result{}, err
	}
	defer p.close()
	stop := follow(p.scanner, opts.Progress)
	defer stop()
	if opts.Record == nil {
		opts.Record = func(locksteward.Sweep) error { return nil }
	}
	if opts.RecordUpdate == nil {
		opts.RecordUpdate = func(locksteward.Update) error { return nil }
	}
	sweep, err := observe(ctx, p, opts.Observe, opts.Record)
	if err == nil && ctx.Err() == nil {
		sweep, err = recheck(ctx, p, sweep, opts.RecordUpdate)
	}
	if ctx.Err() != nil { // what is incomplete is so for no other reason
		return Result{Sweep: sweep, Findings: p.engine.Findings(), Salt: p.salt}, context.Cause(ctx)
	}
	if err != nil {
		return Result{}, err
	}
	if opts.Warn != nil {
		for _, sentence := range p.scanner.Stats().Degraded {
			opts.Warn(sentence)
		}
	}
	return Result{Sweep: sweep, Findings: p.engine.Findings(), Salt: p.salt, TooManyRights: p.tooManyRights(ctx)}, nil
}

// parts are what one scan needs.
type parts struct {
	log     *zap.Logger
	conn    lockstore.Store
	scanner *scanner.Scanner
	engine  *rules.Engine
	target  string
	salt    [16]byte
}

// prepare builds the parts without any I/O.
func prepare(opts Options) (*parts, error) {
	log := opts.Log
	if log == nil {
		log = zap.NewNop()
	}
	classes, err := class.NewMatchSet(opts.Match)
	if err != nil {
		return nil, fmt.Errorf("--match: %w: %w", locksteward.ErrInvalid, err)
	}
	engine, err := rules.New(nil, classes, lockstore.Facts)
	if err != nil {
		return nil, err
	}
	connect.RedirectGoRedisLog(log)
	conn, err := lockstore.Open(opts.Connect)
	if err != nil {
		return nil, err
	}
	target := locksteward.Target{Name: TargetName(opts.Connect.URL), Source: string(conn.Address().Kind), Mode: conn.Topology(), DB: conn.Address().DB}
	cfg := scanner.DefaultConfig()
	cfg.NoThrottle = opts.NoThrottle
	// A digest key of the run: digests of two scans cannot be compared. It is a salt
	// that is stated with the conditions of unlock, so it is not an installation's.
	salt := unlock.NewSalt()
	src, err := conn.Source(lockstore.Options{
		Log: log, Digest: unlock.KeyOf(salt), Redis: redis.Config{SweepOn: opts.SweepOn}, Pace: cfg.Pace, Unpaced: cfg.NoThrottle,
	})
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	s, err := scanner.New(log, target, src, classes, cfg, scanner.Options{})
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &parts{log: log, conn: conn, scanner: s, engine: engine, target: target.Name, salt: salt}, nil
}

// tooManyRights returns a warning; a server that does not say is no reason for one.
func (p *parts) tooManyRights(ctx context.Context) string {
	warning, _ := p.conn.ExcessRights(ctx)
	return warning
}

func (p *parts) close() {
	if err := p.conn.Close(); err != nil {
		p.log.Warn("connections did not close", zap.Error(err))
	}
}

// observe sweeps once, and again until d has passed.
func observe(ctx context.Context, p *parts, d time.Duration, record func(locksteward.Sweep) error) (locksteward.Sweep, error) {
	began, s, engine := time.Now(), p.scanner, p.engine
	first, err := s.Sweep(ctx)
	if len(first.Masters) == 0 {
		if err == nil {
			err = errors.New("the target has no servers")
		}
		return first, p.explained(ctx, err)
	}
	engine.Evaluate(first)
	if err := record(first); err != nil {
		return first, err
	}
	sweep := first
	for time.Since(began) < d {
		select {
		case <-ctx.Done():
			return sweep, context.Cause(ctx)
		case <-time.After(min(between, d-time.Since(began))):
		}
		again, err := s.Sweep(ctx)
		if ctx.Err() != nil {
			return sweep, context.Cause(ctx) // the one before has more
		}
		if sweep = again; len(sweep.Masters) == 0 {
			return sweep, err
		}
		engine.Evaluate(sweep)
		if err := record(sweep); err != nil {
			return sweep, err
		}
	}
	sweep.Duration = first.Duration
	return sweep, nil
}

// explained says what to do about the error of a server that cannot be reached, where
// that is known, in one sentence.
func (p *parts) explained(ctx context.Context, err error) error {
	reason := p.conn.Explain(err)
	switch text, redis := err.Error(), p.conn.Address().Kind == lockstore.Redis; {
	case ctx.Err() != nil, redis && strings.HasSuffix(reason, "see the server's log"):
		return err
	case redis && !strings.Contains(text, "\n"): // it names the node, which need not be in the URL
		if head, todo, ok := strings.Cut(reason, ": "); ok && strings.HasSuffix(text, head) {
			reason = todo // the error says the rest itself
		}
		return fmt.Errorf("%w: %s", err, reason)
	}
	return &explainedError{fmt.Sprintf("read %s: %s", p.conn.Address(), reason), err}
}

// explainedError has a text in place of that of the error.
type explainedError struct {
	text string
	err  error
}

func (e *explainedError) Error() string { return e.text }
func (e *explainedError) Unwrap() error { return e.err }

// recheck reads the locks again, directly, of which a second look decides
// something (no TTL, a deadlock), once the wait of ttl/none is over, and brings
// sweep up to date with what it saw.
func recheck(ctx context.Context, p *parts, sweep locksteward.Sweep, record func(locksteward.Update) error) (locksteward.Sweep, error) {
	s, engine := p.scanner, p.engine
	var due []locksteward.Lock
	for _, key := range engine.Due(p.target) {
		if l, ok := s.Table().Get(key.DB, key.Key); ok {
			due = append(due, l)
		}
	}
	if len(due) == 0 {
		return sweep, nil
	}
	select {
	case <-ctx.Done():
		return sweep, context.Cause(ctx)
	case <-time.After(rules.RecheckAfter + recheckSlack):
	}
	again, err := s.Recheck(ctx, due)
	if err != nil && len(again.Locks)+len(again.Endings) == 0 {
		return sweep, fmt.Errorf("read locks again: %w", err)
	}
	engine.EvaluateDirect(again)
	if err := record(again); err != nil {
		return sweep, err
	}
	sweep.Locks = slices.Clone(sweep.Locks)
	for _, l := range again.Locks {
		for i := range sweep.Locks {
			if sweep.Locks[i].DB == l.DB && sweep.Locks[i].Key == l.Key {
				sweep.Locks[i] = l
			}
		}
	}
	// A lock that ended meanwhile is no lock to list.
	sweep.Locks = slices.DeleteFunc(sweep.Locks, func(l locksteward.Lock) bool {
		return slices.ContainsFunc(again.Endings, func(e locksteward.Ending) bool {
			return e.Lock.DB == l.DB && e.Lock.Key == l.Key && e.How != locksteward.EndedReplaced
		})
	})
	return sweep, nil
}

// follow reports the progress of sweeps until the returned function is called.
func follow(s *scanner.Scanner, progress func(scanner.Progress)) (stop func()) {
	if progress == nil {
		return func() {}
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				p, _ := s.Progress()
				progress(p)
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}

// WhyNever says why no lock of the format called name can be released safely; ""
// where one can.
func WhyNever(name string) string { return formats.WhyNever(name) }
