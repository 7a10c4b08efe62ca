package expr

import (
	"time"

	"cel.dev/cel-go/cel"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// Facts are what one evaluation sees of one lock.
type Facts struct {
	// Now is the server time of the look.
	Now time.Time
	// Lock must not be nil.
	Lock  *locksteward.Lock
	Class class.Class
	// Age is how long this hold is proven to last. It is the caller's, which knows
	// what a constant token can hide.
	Age Age
	// Alive says that the heartbeat of the lock's process is fresh; it counts only
	// where the lock has an Instance.
	Alive bool
}

// Age is how long a lock is held. The zero Age is "not known".
type Age struct {
	Value   time.Duration
	Basis   locksteward.AgeBasis
	Minimum bool // the true age may be larger
}

func (a Age) known() bool { return a.Basis != "" && a.Basis != locksteward.AgeNone }

// activation gives an evaluation its variables. It is Facts under another name,
// so that an evaluation allocates none.
type activation Facts

// ResolveName implements [cel.Activation].
func (a *activation) ResolveName(name string) (any, bool) {
	f := (*Facts)(a)
	switch name {
	case "lock", "class":
		return f, true
	case "now":
		return celTime(f.Now), true
	case "target":
		return celString(f.Lock.Target), true
	}
	return nil, false
}

// Parent implements [cel.Activation]: there is one scope.
func (*activation) Parent() cel.Activation { return nil }

var _ cel.Activation = (*activation)(nil)
