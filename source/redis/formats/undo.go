package formats

import (
	_ "embed" // for the script

	"github.com/locksteward/locksteward/lock/record"
)

//go:embed undo.lua
var undoLua string

// Undo returns the command that puts a lock back that the request of set aside,
// with the expiry that it had (r.ExpireAt), unless somebody holds the key now or
// the time for it is over. The value never leaves the server. Only the key comes
// back, not the auxiliary keys of the library.
func Undo(name, key, of string, r Release) (Command, error) {
	if err := r.check(key); err != nil {
		return Command{}, err
	}
	if why := WhyNoUndo(name); why != "" {
		return Command{}, &Refusal{Key: key, Format: name, Why: why}
	}
	p := newPlan(name, key, r)
	p.options.Of = of
	if WhyNoPlaceholder(name, r.ExpireAt) == "" {
		f, _ := Get(name)
		p.options.Placeholder = f.placeholderOf(of, 1)
	}
	return p.command(undoLua, []string{record.Companion(p.prefix, record.KindUndo, key)}), nil
}

// WhyNoUndo returns why a release of a lock of the format called name cannot be
// undone; "" where it can.
func WhyNoUndo(name string) string {
	if f, ok := Get(name); ok && f.NoUndo != "" {
		return f.NoUndo
	}
	return WhyNever(name)
}
