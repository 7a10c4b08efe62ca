package class

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Match is what a key's name alone tells. The zero Match means that the name
// has nothing to do with locks.
type Match struct {
	// Class is the class that claims the key; [Default] when none does but the
	// name speaks of a lock, "" when it does not.
	Class string
	// Configured says that a configured class claims the key. Word and Candidate
	// are then false: the configuration has the last word.
	Configured bool
	// Word says that lock, locks, mutex, lck or redlock is a whole word of the
	// name: enough for findings, never for a release.
	Word bool
	// Candidate says that a built-in pattern matched and no more.
	Candidate bool
}

// Set is the configured classes in their order, and the default class. The
// zero Set has no configured class. A Set never changes and is safe for
// concurrent use.
type Set struct {
	classes []Class
	byName  map[string]int
	index   index
}

// NewSet returns the set of classes in their order: the first whose pattern
// matches claims a key. The error joins all problems, one a line, each
// beginning with its YAML path ("classes[2].match: …").
func NewSet(classes []Class) (*Set, error) {
	var (
		problems []error
		s        = &Set{byName: make(map[string]int, len(classes))}
		claimed  = make(map[string]string) // pattern -> path of its first use
		earlier  []taken
	)
	for i, c := range classes {
		at := fmt.Sprintf("classes[%d].", i)
		for _, problem := range c.problems() {
			problems = append(problems, fmt.Errorf("%s%w", at, problem))
		}
		if first, taken := s.byName[c.Name]; taken && c.Name != "" {
			problems = append(problems, fmt.Errorf("%sclass: must be unique, got %q of classes[%d] again, write another name or merge the two", at, c.Name, first))
		} else {
			s.byName[c.Name] = i
		}
		problems = append(problems, c.hidden(i, earlier)...)
		for j, text := range c.Match {
			path := fmt.Sprintf("%smatch[%d]", at, j)
			if first, taken := claimed[text]; taken && text != "" {
				problems = append(problems, fmt.Errorf("%s: can never match, got %q of %s again, remove one of the two", path, text, first))
				continue
			}
			claimed[text] = path
			if g, err := parseClassGlob(text); err == nil { // else c.problems reports it
				s.index.add(pattern{class: i, glob: g})
				earlier = append(earlier, taken{class: i, path: path, text: text, prefix: g.prefix, units: units(text)})
			}
		}
		c.Match, c.DeadWhen, c.Approvers = slices.Clone(c.Match), slices.Clone(c.DeadWhen), slices.Clone(c.Approvers)
		s.classes = append(s.classes, c)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return s, nil
}

// Classify says what key's name tells: the first configured class whose
// pattern matches, else what the built-in patterns say. Every scanned key comes
// through here, so it takes a few dozen nanoseconds and does not allocate.
func (s *Set) Classify(key string) Match {
	if i := s.index.first(key); i >= 0 {
		return Match{Class: s.classes[i].Name, Configured: true}
	}
	switch nameOf(key) {
	case hintWord:
		return Match{Class: Default, Word: true}
	case hintCandidate:
		return Match{Class: Default, Candidate: true}
	default:
		return Match{}
	}
}

// Pattern returns the first pattern of the class that matches key, as it is
// configured; "" if none does.
func (s *Set) Pattern(class, key string) string {
	c, _ := s.Get(class)
	for _, text := range c.Match {
		if g, err := parseClassGlob(text); err == nil && strings.HasPrefix(key, g.prefix) && g.matchRest(key[len(g.prefix):]) {
			return text
		}
	}
	return ""
}

// Get returns the class of that name; [Default] is always there. Its slices
// must not be modified.
func (s *Set) Get(name string) (Class, bool) {
	if i, ok := s.byName[name]; ok {
		return s.classes[i], true
	}
	if name == Default {
		return Class{Name: Default}, true
	}
	return Class{}, false
}

// All returns the configured classes in their order, without the default
// class. The classes' own slices must not be modified.
func (s *Set) All() []Class { return slices.Clone(s.classes) }

// NewMatchSet returns a set in which the default class claims the keys that
// match one of globs, as a configured class would: for one-off scans. The error
// joins all problems, each with the glob.
func NewMatchSet(globs []string) (*Set, error) {
	var problems []error
	s := &Set{classes: []Class{{Name: Default, Match: slices.Clone(globs)}}, byName: map[string]int{Default: 0}}
	for _, text := range globs {
		g, err := parseClassGlob(text)
		if err != nil {
			problems = append(problems, fmt.Errorf("%q: %w", text, err))
			continue
		}
		s.index.add(pattern{class: 0, glob: g})
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return s, nil
}
