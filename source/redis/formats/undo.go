package formats

import (
	_ "embed" // for the script

	"github.com/locksteward/locksteward/lock/record"
)

//go:embed undo.lua
var undoLua string

// Undo puts a lock back that the request of set aside, with the expiry that it
// had (r.ExpireAt), unless somebody holds the key now or the time for it is
// over. The value never leaves the server. Only the key comes back, not what
// the library of the dialect called name keeps beside it.
func Undo(name, key, of string, r Release) (Command, error) {
	if err := r.check(key); err != nil {
		return Command{}, err
	}
	if why := WhyNoUndo(name); why != "" {
		return Command{}, &Refusal{Key: key, Dialect: name, Why: why}
	}
	p := newPlan(name, key, r)
	p.how.Of = of
	if WhyNoStand(name, r.ExpireAt) == "" {
		stand := standOf(name, Release{RequestID: of, Stand: 1})
		p.how.Stand = &stand
	}
	return p.command(undoLua, []string{record.Companion(p.prefix, record.KindUndo, key)}), nil
}

// WhyNoUndo says why a release of a lock of the dialect called name cannot be
// undone; "" where it can.
func WhyNoUndo(name string) string {
	if name == Locksteward {
		return "its holder was told at once that the lock is lost, so putting the key back would keep others out for nothing"
	}
	if d, ok := Get(name); ok {
		if f, ok := d.(*family); ok && f.noUndo != "" {
			return f.noUndo
		}
	}
	return WhyNever(name)
}

// noUndoPermit is why the release of a permit cannot be undone.
const noUndoPermit = "its permit went back to those who wait, so that it would be there twice"
