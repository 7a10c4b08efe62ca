package releaser_test

import (
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source/redis/formats"
	"github.com/locksteward/locksteward/source/redis/releaser"
)

func TestLimitsOfDecision(t *testing.T) {
	t.Parallel()
	limits := func(library string) string {
		return (*releaser.Releaser)(nil).Limits(locksteward.Evidence{Library: library}).Decision
	}
	if limits("nobody's") == "" || limits(formats.Locksteward) != "" {
		t.Error("a library that is not known needs a person, ours does not")
	}
}
