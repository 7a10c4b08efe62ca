package zksource

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/source"
)

// maxDirectories is how many directories and fixed nodes of a target are read.
const maxDirectories = 100_000

// step is one element of a path that a pattern names.
type step struct {
	literal string // "" if the element has a wildcard
	pattern string // as package path matches it, if it has
}

// plan is what the classes name.
type plan struct {
	paths   [][]step
	classes []source.ClassWatch
}

// newPlan reads the patterns of the classes, as source/redis takes prefixes from them.
func newPlan(classes *class.Set) plan {
	var p plan
	all := classes.All()
	for _, c := range all {
		w := source.ClassWatch{Class: c.Name, Coverage: source.CoverageFull}
		followed := 0
		for _, pattern := range c.Match {
			steps, why := parsePattern(pattern)
			if why == "" {
				p.paths = append(p.paths, steps)
				followed++
			} else if w.Reason == "" {
				w.Reason = fmt.Sprintf("pattern %q %s", pattern, why)
			}
		}
		switch followed {
		case len(c.Match):
		case 0:
			w.Coverage = source.CoverageNone
		default:
			w.Coverage = source.CoveragePart
		}
		p.classes = append(p.classes, w)
	}
	if !slices.ContainsFunc(all, func(c class.Class) bool { return c.Name == class.Default }) {
		p.classes = append(p.classes, source.ClassWatch{
			Class: class.Default, Coverage: source.CoverageNone, Reason: "only paths that a class names are read; configure one with a pattern such as /locks/*",
		})
	}
	return p
}

// parsePattern splits a pattern at its slashes, or says why it names no paths.
func parsePattern(pattern string) (steps []step, why string) {
	rest, ok := strings.CutPrefix(pattern, "/")
	if !ok {
		return nil, "names no path of ZooKeeper: that begins with /"
	}
	for element := range strings.SplitSeq(rest, "/") {
		if _, err := path.Match(element, ""); err != nil || element == "" {
			return nil, "has an element that cannot be matched: write a name, * or ? between two slashes"
		}
		if exact(element) {
			steps = append(steps, step{literal: class.LiteralPrefix(element)})
			continue
		}
		steps = append(steps, step{pattern: element})
	}
	return steps, ""
}

// exact reports whether an element of a pattern has no wildcard.
func exact(element string) bool {
	for i := 0; i < len(element); i++ {
		switch element[i] {
		case '\\':
			i++
		case '*', '?':
			return false
		}
	}
	return true
}

// expansion is what a plan names on the servers now.
type expansion struct {
	directories []string        // sorted
	parents     map[string]bool // those whose children were listed
}

// expand lists the children of the directories that patterns name, and returns what the
// patterns name now. A literal path is named whether it is there or not.
func (r reader) expand(ctx context.Context, p plan) (expansion, error) {
	e := expansion{parents: map[string]bool{}}
	listed := map[string][]string{}
	for _, steps := range p.paths {
		at := []string{"/"}
		for _, s := range steps {
			var below []string
			for _, dir := range at {
				if s.pattern == "" {
					below = append(below, join(dir, s.literal))
					continue
				}
				names, ok := listed[dir]
				if !ok {
					var err error
					if names, err = r.listing(ctx, dir); err != nil {
						return e, err
					}
					listed[dir], e.parents[dir] = names, true
				}
				for _, name := range names {
					if ok, err := path.Match(s.pattern, name); ok && err == nil {
						below = append(below, join(dir, name))
					}
				}
			}
			if len(below)+len(e.directories) > maxDirectories {
				return e, errManyDirectories
			}
			at = below
		}
		e.directories = append(e.directories, at...)
	}
	slices.Sort(e.directories)
	e.directories = slices.Compact(e.directories)
	return e, nil
}

var errManyDirectories = fmt.Errorf("the classes name more than %d directories; write patterns that name fewer", maxDirectories)

// listing returns the names of a node's children, none if it is not there. With a watch its
// creation is reported, too.
func (r reader) listing(ctx context.Context, dir string) ([]string, error) {
	for {
		names, _, found, err := r.children(ctx, dir)
		if err != nil || found || !r.watch {
			return names, err
		}
		if _, found, err = r.stat(ctx, dir); err != nil || !found {
			return nil, err
		}
	}
}
