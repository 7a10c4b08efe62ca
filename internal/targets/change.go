package targets

import (
	"context"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/config"
)

// Fill makes all configured targets, for [Set.Start].
func (s *Set) Fill(ctx context.Context) error {
	now := s.Now()
	for _, t := range now.Config.Targets {
		w, err := New(ctx, t, now.Classes, s.deps)
		if err != nil {
			return err
		}
		s.Alter(func(next *Snapshot) { next.Watched[t.Name] = w })
	}
	return nil
}

// Start starts all targets.
func (s *Set) Start(ctx context.Context) {
	for _, w := range s.Now().Watched {
		w.Start(ctx)
	}
}

// Stop ends all targets.
func (s *Set) Stop() {
	for _, w := range s.Now().Watched {
		w.Stop()
	}
	s.memory.stop()
}

// Gain makes a target of the configuration that this replica works on from now on; the caller starts it.
func (s *Set) Gain(ctx context.Context, name string) (*Watched, error) {
	for {
		now, err := s.awaitChange(ctx)
		if err != nil {
			return nil, err
		}
		if !s.Configured(name) {
			return nil, fmt.Errorf("target %q: the configuration has it no longer", name)
		}
		w, err := New(ctx, s.Config(name), now.Classes, s.deps)
		if err != nil {
			return nil, err
		}
		if s.add(w, now) {
			return w, nil
		}
		if err := w.Close(); err != nil {
			return nil, err
		}
	}
}

// awaitChange returns the state after the end of a change of the configuration that is under way.
func (s *Set) awaitChange(ctx context.Context) (*Snapshot, error) {
	for {
		s.mu.Lock()
		changing, now := s.changing, s.Now()
		s.mu.Unlock()
		if changing == nil {
			return now, nil
		}
		select {
		case <-changing:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for a change of the configuration: %w", context.Cause(ctx))
		}
	}
}

// add takes in a target that was made for was, unless the configuration changes or has changed.
func (s *Set) add(w *Watched, was *Snapshot) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.Now(); s.changing != nil || now.Classes != was.Classes {
		return false
	}
	s.alterLocked(func(next *Snapshot) { next.Watched[w.target.Name] = w })
	return true
}

// Leave returns a target for the caller to stop and [Set.Remove]; nil if it is not watched here. If a change of the
// configuration ends the target, Leave waits for the end of that.
func (s *Set) Leave(name string) *Watched {
	for {
		s.mu.Lock()
		w, changing := s.Now().Watched[name], s.changing
		taken := w != nil && s.ending[w]
		if w != nil && !taken {
			s.ending[w] = true
		}
		s.mu.Unlock()
		if !taken || changing == nil {
			return w
		}
		<-changing
	}
}

// Remove takes out a target that has ended, after [Set.Leave].
func (s *Set) Remove(w *Watched) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ending, w)
	s.alterLocked(func(next *Snapshot) {
		if next.Watched[w.target.Name] == w {
			delete(next.Watched, w.target.Name)
		}
	})
	s.memory.schedule()
}

// Change is another configuration that is prepared: see [Set.Prepare].
type Change struct {
	set     *Set
	running context.Context //nolint:containedctx // of the targets that Start starts
	cfg     config.Config
	classes *class.Set
	fresh   map[string]replacement
	gone    map[*Watched]bool // those that Commit ends
}

// replacement is a target that is made anew; old is nil for a new one.
type replacement struct{ target, old *Watched }

// Prepare makes the targets that another configuration adds or changes, and changes nothing. What [Change.Start] starts runs
// until running ends. One change is prepared at a time; until the end of Start or Discard no target is gained.
func (s *Set) Prepare(ctx, running context.Context, cfg config.Config, classes *class.Set) (*Change, error) {
	s.mu.Lock()
	s.changing = make(chan struct{})
	now := s.Now()
	s.mu.Unlock()
	c := &Change{set: s, running: running, cfg: cfg, classes: classes, fresh: map[string]replacement{}, gone: map[*Watched]bool{}}
	for _, t := range cfg.Targets {
		old, ok := now.Watched[t.Name]
		if ok && old.Same(t) || !ok && s.shared {
			continue
		}
		w, err := Prepare(ctx, t, classes, s.deps)
		if err != nil {
			c.Discard()
			return nil, err
		}
		c.fresh[t.Name] = replacement{w, old}
	}
	return c, nil
}

// Discard closes what was prepared.
func (c *Change) Discard() {
	for _, f := range c.fresh {
		c.set.closeUnused(f.target)
	}
	c.set.endChange()
}

func (s *Set) closeUnused(w *Watched) {
	if err := w.Close(); err != nil {
		s.deps.Log.Warn("connections did not close", zap.String("target", w.target.Name), zap.Error(err))
	}
}

func (s *Set) endChange() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changing)
	s.changing = nil
}

// Commit ends the targets that the configuration changes or no longer has, and puts the others in their place. Of those that
// it no longer has all findings end.
func (c *Change) Commit() {
	s := c.set
	c.takeGone()
	for w := range c.gone {
		if p := w.Paused(); p != nil && c.fresh[w.target.Name].target != nil {
			c.fresh[w.target.Name].target.Pause(*p)
		}
		w.Stop()
		if c.fresh[w.target.Name].target == nil {
			w.Forget(c.running)
			s.deps.Exporter.RemoveTarget(w.target.Name)
		}
		s.memory.schedule()
	}
	for _, w := range c.replace() {
		s.closeUnused(w)
	}
	for _, w := range s.Now().Watched {
		w.SetClasses(c.classes)
	}
}

// takeGone notes the targets that the change ends, unless somebody else does.
func (c *Change) takeGone() {
	s := c.set
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, w := range s.Now().Watched {
		kept := slices.ContainsFunc(c.cfg.Targets, func(t config.Target) bool { return t.Name == name })
		if _, replaced := c.fresh[name]; (replaced || !kept) && !s.ending[w] {
			s.ending[w], c.gone[w] = true, true
		}
	}
}

// replace puts the new state into effect, and returns the targets that are not needed: another replica works on them now.
func (c *Change) replace() (unused []*Watched) {
	s := c.set
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alterLocked(func(next *Snapshot) {
		next.Config, next.Classes = c.cfg, c.classes
		for w := range c.gone {
			delete(s.ending, w)
			delete(next.Watched, w.target.Name)
		}
		for name, f := range c.fresh {
			if f.old != nil && !c.gone[f.old] {
				unused = append(unused, f.target)
				delete(c.fresh, name)
				continue
			}
			next.Watched[name] = f.target
		}
	})
	return unused
}

// Start starts the new targets. What is stored of one that cannot be reconciled now is reconciled before it is watched.
func (c *Change) Start() {
	for _, f := range c.fresh {
		if err := f.target.Reconcile(c.running); err != nil {
			f.target.log.Error("what is stored of the target is not reconciled yet: it is tried again", zap.Error(err))
		}
		f.target.Start(c.running)
	}
	c.set.endChange()
}
