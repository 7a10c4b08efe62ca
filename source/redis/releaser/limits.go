package releaser

import (
	"fmt"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// Limits returns what the format of a hold does not allow.
func (*Releaser) Limits(hold locksteward.Evidence) source.Limits {
	return source.Limits{
		Release:     whyNever(hold),
		Decision:    formats.NeedsPerson(hold.Library),
		Placeholder: formats.WhyNoPlaceholder(hold.Library, hold.ExpireAt),
		Undo:        formats.WhyNoUndo(hold.Library),
	}
}

// whyNever returns why a hold cannot be released safely.
func whyNever(hold locksteward.Evidence) error {
	name := locksteward.DisplayKey(hold.Key)
	_, known := formats.Get(hold.Library)
	unread := hold.TokenDigest == ""
	switch {
	case unread && (hold.Type == "string" || hold.Type == "hash"):
		return refused("%q was too large to read in full, so it cannot be compared; look at it with redis-cli and release it through its own library", name)
	case !known || hold.Library == formats.Unknown || unread:
		return refused("nobody can say what must be compared in %q (a %s) and who must be woken; see docs/libraries/unknown.md for the way by hand", name, hold.Type)
	case formats.WhyNever(hold.Library) != "":
		return &formats.Refusal{Key: hold.Key, Format: hold.Library, Why: formats.WhyNever(hold.Library)}
	case hold.ExpireAt == 0:
		return refused("the expiry of %q is not known exactly, so it cannot be compared; this needs Redis 7.0 and the right to PEXPIRETIME", name)
	}
	return nil
}

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %s", locksteward.ErrRefused, fmt.Sprintf(format, args...))
}
