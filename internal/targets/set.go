package targets

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/release"
	"github.com/locksteward/locksteward/rules"
)

// Set is the targets that this replica works on, and the configuration that they follow.
type Set struct {
	engine *rules.Engine
	deps   Deps // see Open
	shared bool // other replicas work on targets, too: see Gain
	memory memoryReturn

	now atomic.Pointer[Snapshot]
	// mu guards the replacement of now and the fields below. Nothing that waits is called with it.
	mu sync.Mutex
	// changing is closed when the configuration that is being prepared is in effect or discarded; nil without one.
	changing chan struct{}
	// ending are the targets that somebody ends.
	ending map[*Watched]bool
}

// Snapshot is the state of a [Set] at one moment. It is never changed, so that readers need no lock: they run in transactions
// of the store, among others.
type Snapshot struct {
	Config  config.Config
	Classes *class.Set
	Watched map[string]*Watched
}

// NewSet returns a set of no targets.
func NewSet(engine *rules.Engine, cfg config.Config, classes *class.Set) *Set {
	s := &Set{engine: engine, ending: map[*Watched]bool{}}
	s.now.Store(&Snapshot{Config: cfg, Classes: classes})
	return s
}

// Open has the set make targets with deps. If shared, other replicas work on targets, too, and each is watched here from
// [Set.Gain] to [Set.Remove]; else [Set.Fill] makes all.
func (s *Set) Open(deps Deps, shared bool) { s.deps, s.shared = deps, shared }

// Now returns the state of this moment; the caller must not change it.
func (s *Set) Now() *Snapshot { return s.now.Load() }

// Alter replaces the current state by a copy that fn has changed. Fn must not call anything that waits.
func (s *Set) Alter(fn func(next *Snapshot)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alterLocked(fn)
}

func (s *Set) alterLocked(fn func(next *Snapshot)) {
	next := *s.now.Load()
	if next.Watched = maps.Clone(next.Watched); next.Watched == nil {
		next.Watched = map[string]*Watched{}
	}
	fn(&next)
	s.now.Store(&next)
}

// Get returns a target by its name.
func (s *Set) Get(name string) (*Watched, error) {
	w, ok := s.Now().Watched[name]
	if !ok {
		return nil, NoTarget(name)
	}
	return w, nil
}

// NoTarget is the error for a name that no target has.
func NoTarget(name string) error {
	return fmt.Errorf("%w: no target is named %q; 'locksteward config check' lists them", locksteward.ErrNotFound, name)
}

// Named returns one target that this replica works on, or all by name if it is "".
func (s *Set) Named(name string) []*Watched {
	var out []*Watched
	for own, w := range s.Now().Watched {
		if name == "" || own == name {
			out = append(out, w)
		}
	}
	slices.SortFunc(out, func(a, b *Watched) int { return cmp.Compare(a.target.Name, b.target.Name) })
	return out
}

// OneOrAll returns the target of that name, or all in the order of the configuration.
func (s *Set) OneOrAll(target string) ([]*Watched, error) {
	if target != "" {
		w, err := s.Get(target)
		if err != nil {
			return nil, err
		}
		return []*Watched{w}, nil
	}
	now := s.Now()
	var list []*Watched
	for _, t := range now.Config.Targets {
		if w, ok := now.Watched[t.Name]; ok {
			list = append(list, w)
		}
	}
	return list, nil
}

// Configured reports whether a target is in the configuration.
func (s *Set) Configured(target string) bool {
	return slices.ContainsFunc(s.Now().Config.Targets, func(t config.Target) bool { return t.Name == target })
}

// Config returns a target of the configuration. One that was removed has its name alone.
func (s *Set) Config(name string) config.Target {
	for _, t := range s.Now().Config.Targets {
		if t.Name == name {
			return t
		}
	}
	return config.Target{Name: name}
}

// Names are the names of the configured targets.
func (s *Set) Names() []string {
	var out []string
	for _, t := range s.Now().Config.Targets {
		out = append(out, t.Name)
	}
	return out
}

// RunsHere reports whether this replica works on a target.
func (s *Set) RunsHere(target string) bool {
	_, err := s.Get(target)
	return err == nil
}

// Class is a class of the configuration; the zero class without one.
func (s *Set) Class(name string) class.Class {
	c, _ := s.Now().Classes.Get(name)
	return c
}

// Down says of each target here whether the last sweep found it down, once one ended.
func (s *Set) Down() map[string]bool {
	out := map[string]bool{}
	for name, w := range s.Now().Watched {
		if down := w.down.Load(); down != nil {
			out[name] = *down
		}
	}
	return out
}

// ReadLock reads one lock directly and tells which rules fire on it.
func (s *Set) ReadLock(ctx context.Context, target, key string) (locksteward.Lock, []string, error) {
	w, err := s.Get(target)
	if err != nil {
		return locksteward.Lock{}, nil, err
	}
	l, err := w.Read(ctx, key)
	if err != nil {
		return locksteward.Lock{}, nil, err
	}
	return l, firing(s.engine, l), nil
}

// ProofOf is how surely the holder of a lock is dead where holder/dead fires on it.
func (s *Set) ProofOf(l locksteward.Lock) locksteward.Proof { return proofOf(s.engine, l) }

var (
	_ release.LockReader = (*Set)(nil)
	_ release.Prover     = (*Set)(nil)
)
