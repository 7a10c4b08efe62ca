package formats

import (
	"fmt"

	"github.com/locksteward/locksteward"
)

// Refusal says why a lock cannot be released safely. It wraps
// locksteward.ErrRefused.
type Refusal struct {
	Key     string // exact bytes
	Dialect string
	// Why is half a sentence for people.
	Why string
}

// Error returns the sentence, with the page where the way by hand stands.
func (r *Refusal) Error() string {
	return fmt.Sprintf("release %q: %s: %s; see docs/dialects/%s.md for the way by hand",
		locksteward.DisplayKey(r.Key), r.Why, locksteward.ErrRefused, r.Dialect)
}

// Unwrap returns locksteward.ErrRefused.
func (r *Refusal) Unwrap() error { return locksteward.ErrRefused }

// WhyNever says why no lock of the dialect called name can be released safely;
// "" where one can. Of a lock that can be released in general, the moment may
// still forbid it: [Dialect.Release] has the last word.
func WhyNever(name string) string {
	d, ok := Get(name)
	switch {
	case !ok:
		return "this version does not know the dialect"
	case name == Unknown:
		return "nobody can say what must be compared and who must be woken"
	}
	if f, ok := d.(*family); ok && f.release == nil {
		return f.refuse
	}
	return ""
}
