package config

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"
)

// LookEvery is how often a [Discovery] is meant to look: files are read each time,
// and a DNS name is asked for when it is due.
const LookEvery = 2 * time.Second

// answerWithin is how long one name is waited for.
const answerWithin = 5 * time.Second

// Discovery follows the targets of `targets_from`. What is doubtful changes nothing:
//
//   - files that are gone, unreadable, empty, invalid or that changed since the look
//     before (they are being written), and a glob that matches nothing any more;
//   - a DNS name that is not answered, or answered without records. A record that an
//     answer lacks counts on for [SRV.Keep].
//
// A Discovery is not safe for concurrent use, but for [Discovery.Look], which only
// reads.
type Discovery struct {
	base    Config // with the targets of the list alone
	sources []*source
}

// source is a pattern of files or a DNS name.
type source struct {
	path string // in the configuration
	name string // the pattern, or the record
	srv  *SRV   // nil for files

	targets []Target
	err     error // why it is not followed at present
	read    bool  // it was read once, now or by an agent before

	seen map[string][]byte      // files as they were at the last look
	last map[Endpoint]time.Time // records, with the answer that had them last
	due  time.Time
}

// SourceState is how far a source of targets is followed.
type SourceState struct {
	// Path is that of its key, Name the pattern or the DNS name.
	Path, Name string
	// Targets are how many come from it.
	Targets int
	// Err says why what it has now is not in use; nil: it is.
	Err error
	// Read says that what it has, or had once, is known.
	Read bool
}

// Seen is what a look found at the sources that were due. It goes to
// [Discovery.Take].
type Seen struct {
	at    time.Time
	files map[string]filesSeen
	srv   map[string]srvSeen
}

type filesSeen struct {
	files map[string][]byte
	err   error
}

type srvSeen struct {
	records []Endpoint
	err     error
}

// Change is what became of the targets of one source.
type Change struct {
	// Config is the configuration with it.
	Config Config
	// Source is the pattern or DNS name; Added, Removed and Changed are names of
	// targets.
	Source                  string
	Added, Removed, Changed []string

	of      *source
	targets []Target
}

// Answers are DNS records by name, with the time of the answer that had them last: what an
// agent remembers for the next one.
type Answers map[string][]Answer

// Answer is one record of [Answers].
type Answer struct {
	Endpoint

	Seen time.Time `json:"seen"`
}

// NewDiscovery follows the sources of a configuration that was loaded. answers are
// those of an agent before, so that targets are known while the DNS is away.
func NewDiscovery(c Config, answers Answers) *Discovery {
	d := &Discovery{}
	d.base, d.sources = c, nil
	d.base.Targets = slices.DeleteFunc(slices.Clone(c.Targets), func(t Target) bool { return t.source != "" })
	for i, pattern := range c.Sources.Files {
		s := &source{path: fmt.Sprintf("targets_from.files[%d]", i), name: pattern, read: true}
		for _, t := range c.Targets {
			if file, ok := strings.CutPrefix(t.source, "file "); ok && matches(pattern, file) {
				s.targets = append(s.targets, t)
			}
		}
		d.sources = append(d.sources, s)
	}
	for i := range c.Sources.SRV {
		srv := &c.Sources.SRV[i]
		s := &source{path: fmt.Sprintf("targets_from.srv[%d]", i), name: srv.Record, srv: srv, last: map[Endpoint]time.Time{}}
		for _, a := range answers[srv.Record] {
			s.last[a.Endpoint] = a.Seen
		}
		if s.read = len(s.last) > 0; s.read {
			var problems []error
			s.targets, problems = srv.expand(s.records())
			s.err = errors.Join(problems...)
		}
		d.sources = append(d.sources, s)
	}
	return d
}

// Rebased follows a configuration that was loaded anew. What was answered for DNS
// names counts on.
func (d *Discovery) Rebased(c Config) *Discovery { return NewDiscovery(c, d.Answers()) }

func matches(pattern, file string) bool {
	if !isGlob(pattern) {
		return pattern == file
	}
	ok, err := filepath.Match(pattern, file)
	return ok && err == nil
}

// Config is the configuration with the targets of all sources.
func (d *Discovery) Config() Config { return d.with(nil, nil) }

// with is the configuration where one source has other targets than now.
func (d *Discovery) with(one *source, targets []Target) Config {
	c := d.base
	c.Targets = slices.Clone(c.Targets)
	for _, s := range d.sources {
		if s == one {
			c.Targets = append(c.Targets, targets...)
		} else {
			c.Targets = append(c.Targets, s.targets...)
		}
	}
	return c
}

// Discovered is the configuration with what its sources name now, and what is wrong
// with them: for programs that look once. It may take a few seconds.
func (c Config) Discovered(ctx context.Context) (Config, error) {
	d := NewDiscovery(c, nil)
	var errs []error
	for _, change := range d.Take(d.Look(ctx, time.Now())) {
		d.Done(change, d.Plan(change))
	}
	for _, s := range d.States() {
		if s.Err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.Path, s.Err))
		}
	}
	return d.Config(), errors.Join(errs...)
}

// Look reads what is due. It may take a few seconds.
func (d *Discovery) Look(ctx context.Context, now time.Time) Seen {
	seen := Seen{at: now, files: map[string]filesSeen{}, srv: map[string]srvSeen{}}
	ask := map[string]bool{}
	for _, s := range d.sources {
		switch {
		case s.srv == nil:
			files, err := readTargetFiles(s.name)
			seen.files[s.name] = filesSeen{files, err}
		case !now.Before(s.due):
			ask[s.name] = true
		}
	}
	maps.Copy(seen.srv, lookUp(ctx, d.base.Sources.DNS, slices.Sorted(maps.Keys(ask))))
	return seen
}

// Take says what is to be changed after a look, a change for each source; each goes
// to [Discovery.Done] before the next is applied.
func (d *Discovery) Take(seen Seen) []*Change {
	var out []*Change
	for _, s := range d.sources {
		var targets []Target
		var known bool
		if s.srv == nil {
			if files, ok := seen.files[s.name]; ok {
				targets, known = s.takeFiles(files)
			}
		} else if answer, ok := seen.srv[s.name]; ok {
			targets, known = s.takeSRV(answer, seen.at)
		}
		if known && !reflect.DeepEqual(targets, s.targets) {
			out = append(out, change(s, targets))
		}
	}
	return out
}

// takeFiles returns the targets of files, and whether they count.
func (s *source) takeFiles(now filesSeen) ([]Target, bool) {
	before := s.seen
	if now.err != nil {
		s.seen, s.err = map[string][]byte{}, now.err
		return nil, false
	}
	s.seen = now.files
	if len(now.files) == 0 && len(s.targets) > 0 {
		s.err = fmt.Errorf("%s matches no file any more; write one with `targets: []` if that is meant", s.name)
		return nil, false
	}
	if before != nil && !reflect.DeepEqual(before, now.files) {
		return nil, false // being written: the next look will tell
	}
	targets, err := parseTargets(now.files)
	if s.err = err; err != nil {
		return nil, false
	}
	return targets, true
}

// takeSRV returns the targets of an answer, and whether there are any known.
func (s *source) takeSRV(now srvSeen, at time.Time) ([]Target, bool) {
	s.due = at.Add(orDefault(s.srv.Every, defaultSRVEvery))
	if now.err != nil {
		s.err = now.err
		return nil, false
	}
	for _, r := range now.records {
		s.last[r] = at
	}
	keep := orDefault(s.srv.Keep, defaultSRVKeep)
	maps.DeleteFunc(s.last, func(_ Endpoint, seen time.Time) bool { return at.Sub(seen) > keep })
	s.read = true
	targets, problems := s.srv.expand(s.records())
	s.err = errors.Join(problems...)
	return targets, true
}

// records are those that count, sorted.
func (s *source) records() []Endpoint {
	return slices.SortedFunc(maps.Keys(s.last), func(a, b Endpoint) int { return strings.Compare(a.String(), b.String()) })
}

func change(s *source, targets []Target) *Change {
	c := &Change{Source: s.name, of: s, targets: targets}
	was := map[string]Target{}
	for _, t := range s.targets {
		was[t.Name] = t
	}
	for _, t := range targets {
		old, ok := was[t.Name]
		switch {
		case !ok:
			c.Added = append(c.Added, t.Name)
		case !reflect.DeepEqual(old, t):
			c.Changed = append(c.Changed, t.Name)
		}
		delete(was, t.Name)
	}
	c.Removed = slices.Sorted(maps.Keys(was))
	return c
}

// Plan completes a change with what the sources before it came to, and checks the
// whole.
func (d *Discovery) Plan(c *Change) error {
	c.Config = d.with(c.of, c.targets)
	return c.Config.Validate()
}

// Done ends a change: it is in use, or err says why it is not; then it is offered
// again at the next look.
func (d *Discovery) Done(c *Change, err error) {
	if err != nil {
		c.of.err = err
		return
	}
	c.of.targets = c.targets
}

// States are the sources, in the order of the configuration.
func (d *Discovery) States() []SourceState {
	out := make([]SourceState, 0, len(d.sources))
	for _, s := range d.sources {
		out = append(out, SourceState{Path: s.path, Name: s.name, Targets: len(s.targets), Err: s.err, Read: s.read})
	}
	return out
}

// Answers are what the next agent may begin with.
func (d *Discovery) Answers() Answers {
	out := Answers{}
	for _, s := range d.sources {
		if s.srv == nil {
			continue
		}
		var list []Answer
		for _, r := range s.records() {
			list = append(list, Answer{Endpoint: r, Seen: s.last[r]})
		}
		out[s.name] = list
	}
	return out
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}
