package plural_test

import (
	"fmt"
	"testing"

	"github.com/locksteward/locksteward/internal/plural"
)

func TestCount(t *testing.T) {
	t.Parallel()
	for noun, want := range map[string]string{
		"lock": "locks", "key": "keys", "class": "classes", "match": "matches", "entry": "entries", "audit entry": "audit entries",
	} {
		if got := plural.Count(1, noun); got != "1 "+noun {
			t.Errorf("one %s: %q", noun, got)
		}
		for _, n := range []int64{0, 2, 1 << 40} {
			if got := plural.Count(n, noun); got != fmt.Sprint(n, " ", want) {
				t.Errorf("%d of %s: %q", n, noun, got)
			}
		}
	}
}
