package release

import (
	"fmt"
	"slices"

	"github.com/locksteward/locksteward"
)

// next says which states may follow each; what is not in it is final.
var next = map[locksteward.RequestState][]locksteward.RequestState{
	locksteward.RequestPending: {
		locksteward.RequestApproved, locksteward.RequestDenied, locksteward.RequestExpired, locksteward.RequestSuperseded,
	},
	locksteward.RequestApproved: {
		locksteward.RequestExecuting, locksteward.RequestDenied, locksteward.RequestExpired, locksteward.RequestSuperseded,
	},
	locksteward.RequestExecuting: {
		locksteward.RequestReleased, locksteward.RequestAlreadyGone, locksteward.RequestChanged,
		locksteward.RequestFailed, locksteward.RequestUnknown,
	},
}

// advance moves r to a state that may follow its own. An error is a fault of
// the program, not of a person.
func advance(r *locksteward.Request, to locksteward.RequestState) error {
	if !slices.Contains(next[r.State], to) {
		return fmt.Errorf("%w: request %s is %s and cannot become %s", locksteward.ErrConflict, r.ID, r.State, to)
	}
	r.State = to
	return nil
}
