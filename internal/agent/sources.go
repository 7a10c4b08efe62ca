package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/internal/targets"
)

// answersKept is how old what the store has of DNS answers may become: a record that
// vanished while no agent ran counts on from there.
const answersKept = time.Minute

// followed is what was said and kept of the sources of targets.
type followed struct {
	said   map[string]string // by path: why one is not followed
	kept   map[string][]config.Endpoint
	keptAt time.Time
	unread atomic.Pointer[error] // why the targets of one are not even known
}

// answersSetting is where the store keeps what the DNS said of a name last.
func answersSetting(name string) string { return "srv:" + name }

// openSources adds the targets of DNS names that an agent knew before to the
// configuration: those of files are in it already.
func (a *Agent) openSources(ctx context.Context) error {
	answers := config.Answers{}
	cfg := a.targets.Now().Config
	for _, s := range cfg.Sources.SRV {
		text, err := a.store.LoadSetting(ctx, answersSetting(s.Record))
		if err != nil {
			return fmt.Errorf("load the targets of %s: %w", s.Record, err)
		}
		var list []config.Answer
		if text != "" {
			if err := json.Unmarshal([]byte(text), &list); err != nil {
				return fmt.Errorf("decode the targets of %s: %w", s.Record, err)
			}
		}
		answers[s.Record] = list
	}
	a.sources = config.NewDiscovery(cfg, answers)
	all := a.sources.Config()
	if err := all.Validate(); err != nil {
		// The list has changed meanwhile: the DNS will tell again.
		a.log.Warn("targets that were known of the DNS cannot be watched on", zap.Error(err))
		a.sources = config.NewDiscovery(cfg, nil)
		all = a.sources.Config()
	}
	a.targets.Alter(func(next *targets.Snapshot) { next.Config = all })
	if a.member != nil {
		a.member.SetDuties(duties(all))
	}
	return nil
}

// followSources follows targets that stand outside of the configuration until ctx
// ends; ended waits for that. Whoever waits holds no lock: a look may be waiting.
func (a *Agent) followSources(ctx context.Context) (ended func()) {
	var group sync.WaitGroup
	group.Go(func() {
		tick := time.NewTicker(a.lookEvery)
		defer tick.Stop()
		for {
			a.lookAtSources(ctx)
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	return group.Wait
}

// lookAtSources takes in what became of the targets of each source.
func (a *Agent) lookAtSources(ctx context.Context) {
	endChange := a.beginChange()
	sources := a.sources
	endChange()
	if len(sources.States()) == 0 {
		return
	}
	// Others may change the configuration meanwhile: the DNS may keep silent for seconds.
	seen := sources.Look(ctx, time.Now())

	defer a.beginChange()()
	if a.sources != sources || ctx.Err() != nil {
		return // a reload came between
	}
	changed := false
	for _, c := range sources.Take(seen) {
		err := a.takeChange(ctx, c)
		sources.Done(c, err)
		changed = changed || err == nil
	}
	if changed {
		a.updateDuties(ctx)
	}
	a.showSources()
	a.rememberAnswers(ctx, time.Now())
}

// takeChange applies what became of one source.
func (a *Agent) takeChange(ctx context.Context, c *config.Change) error {
	if err := a.sources.Plan(c); err != nil {
		return err
	}
	if err := a.change(ctx, c.Config); err != nil {
		return err
	}
	a.log.Info("targets changed", zap.String("source", c.Source), zap.Strings("added", c.Added), zap.Strings("removed", c.Removed), zap.Strings("changed", c.Changed))
	for _, warning := range c.Config.Warnings() {
		a.log.Warn("configuration", zap.String("warning", warning))
	}
	a.audit(ctx, "targets.change", reasonOf(c))
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

// showSources has the metrics and, once, the log say which sources are not followed.
// The caller changes the configuration.
func (a *Agent) showSources() {
	states := a.sources.States()
	said := make(map[string]string, len(states))
	shown := make([]exporter.TargetSource, 0, len(states))
	for _, s := range states {
		shown = append(shown, exporter.TargetSource{Name: s.Name, Up: s.Err == nil})
		was := a.follows.said[s.Path]
		switch {
		case s.Err != nil:
			said[s.Path] = s.Err.Error()
			if said[s.Path] != was {
				a.log.Warn("a source of targets is not followed: the targets that were known of it stay",
					zap.String("source", s.Name), zap.String("key", s.Path), zap.Int("targets", s.Targets), zap.Error(s.Err))
			}
		case was != "":
			a.log.Info("the source of targets is followed again", zap.String("source", s.Name), zap.String("key", s.Path), zap.Int("targets", s.Targets))
		}
	}
	a.follows.said = said
	a.exporter.SetTargetSources(shown)
	err := unread(states)
	a.follows.unread.Store(&err)
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
func (a *Agent) rememberAnswers(ctx context.Context, now time.Time) {
	answers := a.sources.Answers()
	kept := make(map[string][]config.Endpoint, len(answers))
	for name, list := range answers {
		for _, one := range list {
			kept[name] = append(kept[name], one.Endpoint)
		}
	}
	same := maps.EqualFunc(kept, a.follows.kept, slices.Equal[[]config.Endpoint])
	if len(kept) == 0 || same && now.Sub(a.follows.keptAt) < answersKept {
		return
	}
	for name, list := range answers {
		raw, err := json.Marshal(list)
		if err == nil {
			err = a.store.SaveSetting(ctx, answersSetting(name), string(raw))
		}
		if err != nil {
			a.log.Warn("what the DNS said of targets is not kept: an agent that starts while it is away will not know them", zap.String("source", name), zap.Error(err))
			return
		}
	}
	a.follows.kept, a.follows.keptAt = kept, now
}
