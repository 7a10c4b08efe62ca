package lockprom

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/locksteward/locksteward/lock"
)

// DefaultMaxClasses is how many classes have metrics of their own by default.
const DefaultMaxClasses = 32

// maxMaxClasses is the most that a caller may ask for: some 130 series each.
const maxMaxClasses = 1000

// Options tune a [Collector]. The zero value is usable.
type Options struct {
	// MaxClasses is how many classes have metrics of their own: the first ones.
	// Later ones share [OtherClass]. 1 to 1000, default [DefaultMaxClasses].
	MaxClasses int
	// Classes have their series from the start, so that rates see their first
	// event; at most MaxClasses.
	Classes []string
	// ConstLabels are put on all metrics, so that several collectors fit into
	// one registry. All of those must have the same names of labels.
	ConstLabels prometheus.Labels
	// Buckets are the upper bounds of the classic histograms in seconds,
	// ascending. nil is 100 µs to 10 min in 15 steps; empty, but not nil, leaves
	// the native histograms alone, which are there in any case.
	Buckets []float64
}

// withDefaults also copies what the caller may change later.
func (o Options) withDefaults() Options {
	o.MaxClasses = cmp.Or(o.MaxClasses, DefaultMaxClasses)
	o.ConstLabels = maps.Clone(o.ConstLabels)
	if o.Buckets == nil {
		o.Buckets = defaultBuckets
	}
	o.Buckets = slices.Clone(o.Buckets)
	return o
}

// labelName is a name that Prometheus of every version takes.
var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// validate reports all problems at once: the metrics would panic on them.
func (o Options) validate(clients []*lock.Client) error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("new lock collector: %w: "+format, append([]any{lock.ErrInvalid}, args...)...))
	}
	if o.MaxClasses < 1 || o.MaxClasses > maxMaxClasses {
		bad("MaxClasses: want 1 to %d, got %d", maxMaxClasses, o.MaxClasses)
	} else if len(o.Classes) > o.MaxClasses {
		bad("Classes: want at most MaxClasses = %d, got %d", o.MaxClasses, len(o.Classes))
	}
	reserved := reservedLabels()
	for _, name := range slices.Sorted(maps.Keys(o.ConstLabels)) {
		switch {
		case !labelName.MatchString(name) || strings.HasPrefix(name, "__"):
			bad("ConstLabels: %q is no name of a label", name)
		case slices.Contains(reserved, name):
			bad("ConstLabels: %q is a label of the metrics themselves", name)
		case !utf8.ValidString(o.ConstLabels[name]):
			bad("ConstLabels[%q]: want UTF-8, got %q", name, o.ConstLabels[name])
		}
	}
	for i, b := range o.Buckets {
		switch {
		case math.IsNaN(b):
			bad("Buckets[%d]: is not a number", i)
		case i > 0 && b <= o.Buckets[i-1]:
			bad("Buckets[%d]: want more than %g before it, got %g", i, o.Buckets[i-1], b)
		}
	}
	for i, client := range clients {
		if client == nil {
			bad("clients[%d]: is nil", i)
		}
	}
	return errors.Join(errs...)
}

// reservedLabels are the labels of the metrics, and of histograms.
func reservedLabels() []string {
	list := []string{"le", "quantile"}
	for _, m := range table {
		list = append(list, m.Labels...)
	}
	return list
}
