// Package targetsources follows targets that stand outside of the configuration file: in files and in the DNS.
//
// # Guarantees
//
//   - Targets that were known once stay while their source cannot be read.
//   - A change that the agent refuses changes nothing, and is logged once.
//
// # Not guaranteed
//
//   - What the DNS says is in the store up to a minute later.
//
// # Concurrency
//
// [Follower.Run] is called once. [Follower.Unread] may be called at any time; the caller of all else changes the configuration.
//
// # Failure
//
// A source that cannot be read is in the metrics and in the log.
package targetsources

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/store"
)

// answersKept is how old what the store has of DNS answers may become: a record that
// vanished while no agent ran counts on from there.
const answersKept = time.Minute

// Deps is what a [Follower] works with.
type Deps struct {
	Log     *zap.Logger
	Store   *store.Store
	Metrics *exporter.Exporter
	Every   time.Duration // between two looks
	// BeginChange waits until nobody else changes the configuration.
	BeginChange func() (end func())
	// Change has the agent follow another configuration, or says why it cannot.
	Change func(context.Context, config.Config) error
	// Changed is called after changes.
	Changed func(context.Context)
	// Audit writes an entry about the agent itself.
	Audit func(ctx context.Context, action, reason string)
}

// Follower follows the sources of targets. Make one with [Open].
type Follower struct {
	deps Deps
	// The fields down to keptAt are used by one change of the configuration at a time.
	sources *config.Discovery
	said    map[string]string // by path: why one is not followed
	kept    map[string][]config.Endpoint
	keptAt  time.Time
	unread  atomic.Pointer[error] // why the targets of one are not even known
}

// answersSetting is where the store keeps what the DNS said of a name last.
func answersSetting(name string) string { return "srv:" + name }

// Open returns a follower whose configuration has the targets of DNS names that an agent knew before: those of files are
// in it already.
func Open(ctx context.Context, cfg config.Config, deps Deps) (*Follower, error) {
	answers := config.Answers{}
	for _, s := range cfg.Sources.SRV {
		text, err := deps.Store.LoadSetting(ctx, answersSetting(s.Record))
		if err != nil {
			return nil, fmt.Errorf("load the targets of %s: %w", s.Record, err)
		}
		var list []config.Answer
		if text != "" {
			if err := json.Unmarshal([]byte(text), &list); err != nil {
				return nil, fmt.Errorf("decode the targets of %s: %w", s.Record, err)
			}
		}
		answers[s.Record] = list
	}
	f := &Follower{deps: deps, sources: config.NewDiscovery(cfg, answers)}
	all := f.sources.Config()
	if err := all.Validate(); err != nil {
		// The list has changed meanwhile: the DNS will tell again.
		deps.Log.Warn("targets that were known of the DNS cannot be watched on", zap.Error(err))
		f.sources = config.NewDiscovery(cfg, nil)
	}
	return f, nil
}

// Config is the configuration with the targets of all sources.
func (f *Follower) Config() config.Config { return f.sources.Config() }

// Rebased returns the sources of a configuration that was read again, for [Follower.Follow].
func (f *Follower) Rebased(loaded config.Config) *config.Discovery { return f.sources.Rebased(loaded) }

// Follow follows other sources from now on.
func (f *Follower) Follow(sources *config.Discovery) { f.sources = sources }

// Unread is why not even the targets of a source are known yet; nil: those of all are.
func (f *Follower) Unread() error {
	if err := f.unread.Load(); err != nil {
		return *err
	}
	return nil
}

// Run follows the sources until ctx ends.
func (f *Follower) Run(ctx context.Context) {
	tick := time.NewTicker(f.deps.Every)
	defer tick.Stop()
	for {
		f.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// look takes in what became of the targets of each source.
func (f *Follower) look(ctx context.Context) {
	endChange := f.deps.BeginChange()
	sources := f.sources
	endChange()
	if len(sources.States()) == 0 {
		return
	}
	// Others may change the configuration meanwhile: the DNS may keep silent for seconds.
	seen := sources.Look(ctx, time.Now())

	defer f.deps.BeginChange()()
	if f.sources != sources || ctx.Err() != nil {
		return // a reload came between
	}
	changed := false
	for _, c := range sources.Take(seen) {
		err := f.takeChange(ctx, c)
		sources.Done(c, err)
		changed = changed || err == nil
	}
	if changed {
		f.deps.Changed(ctx)
	}
	f.Show()
	f.rememberAnswers(ctx, time.Now())
}

// takeChange applies what became of one source.
func (f *Follower) takeChange(ctx context.Context, c *config.Change) error {
	if err := f.sources.Plan(c); err != nil {
		return err
	}
	if err := f.deps.Change(ctx, c.Config); err != nil {
		return err
	}
	f.deps.Log.Info("targets changed", zap.String("source", c.Source), zap.Strings("added", c.Added), zap.Strings("removed", c.Removed), zap.Strings("changed", c.Changed))
	for _, warning := range c.Config.Warnings() {
		f.deps.Log.Warn("configuration", zap.String("warning", warning))
	}
	f.deps.Audit(ctx, "targets.change", reasonOf(c))
	return nil
}

// reasonOf says in a line what became of a source.
func reasonOf(c *config.Change) string {
	parts := []string{c.Source + " has other targets now"}
	for what, names := range map[string][]string{"added": c.Added, "removed": c.Removed, "changed": c.Changed} {
		if len(names) > 0 {
			parts = append(parts, what+": "+strings.Join(names, ", "))
		}
	}
	slices.Sort(parts[1:])
	return strings.Join(parts, "; ")
}

// Show has the metrics and, once, the log say which sources are not followed.
// The caller changes the configuration.
func (f *Follower) Show() {
	states := f.sources.States()
	said := make(map[string]string, len(states))
	shown := make([]exporter.TargetSource, 0, len(states))
	for _, s := range states {
		shown = append(shown, exporter.TargetSource{Name: s.Name, Up: s.Err == nil})
		was := f.said[s.Path]
		switch {
		case s.Err != nil:
			said[s.Path] = s.Err.Error()
			if said[s.Path] != was {
				f.deps.Log.Warn("a source of targets is not followed: the targets that were known of it stay",
					zap.String("source", s.Name), zap.String("key", s.Path), zap.Int("targets", s.Targets), zap.Error(s.Err))
			}
		case was != "":
			f.deps.Log.Info("the source of targets is followed again", zap.String("source", s.Name), zap.String("key", s.Path), zap.Int("targets", s.Targets))
		}
	}
	f.said = said
	f.deps.Metrics.SetTargetSources(shown)
	err := unread(states)
	f.unread.Store(&err)
}

// unread is why not even the targets of a source are known yet; nil: those of all are.
func unread(states []config.SourceState) error {
	var errs []error
	for _, s := range states {
		if !s.Read {
			err := fmt.Errorf("%s: the targets of %s are not known yet", s.Path, s.Name)
			if s.Err != nil {
				err = fmt.Errorf("%w: %w", err, s.Err)
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// rememberAnswers keeps what the DNS said for an agent that starts while it is away.
func (f *Follower) rememberAnswers(ctx context.Context, now time.Time) {
	answers := f.sources.Answers()
	kept := make(map[string][]config.Endpoint, len(answers))
	for name, list := range answers {
		for _, one := range list {
			kept[name] = append(kept[name], one.Endpoint)
		}
	}
	same := maps.EqualFunc(kept, f.kept, slices.Equal[[]config.Endpoint])
	if len(kept) == 0 || same && now.Sub(f.keptAt) < answersKept {
		return
	}
	for name, list := range answers {
		raw, err := json.Marshal(list)
		if err == nil {
			err = f.deps.Store.SaveSetting(ctx, answersSetting(name), string(raw))
		}
		if err != nil {
			f.deps.Log.Warn("what the DNS said of targets is not kept: an agent that starts while it is away will not know them", zap.String("source", name), zap.Error(err))
			return
		}
	}
	f.kept, f.keptAt = kept, now
}
