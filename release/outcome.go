package release

import (
	"fmt"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// Sentence puts the outcome of a request with that evidence into words.
func Sentence(e locksteward.Evidence, o source.Outcome) string {
	said := sentence(e, o)
	if o.ConfirmedBy == source.ConfirmedByRecord {
		said += " Its answer was lost: confirmed by the execution record."
	}
	return said
}

func sentence(e locksteward.Evidence, o source.Outcome) string {
	switch o.State {
	case locksteward.RequestReleased:
		return doneSentence(e, o.WaitersWoken)
	case locksteward.RequestAlreadyGone:
		switch e.Act {
		case locksteward.ActUndo:
			return "Not undone: the lock is not kept any more; its own time or that for an undo is over. Nothing was touched."
		case locksteward.ActLift:
			return "Nothing stood in the lock's place any more. Nothing was touched."
		}
		return "Not released: the lock had ended by itself. Nothing was touched."
	case locksteward.RequestChanged:
		switch e.Act {
		case locksteward.ActUndo:
			return "Not undone: somebody holds the lock now. Nothing was touched."
		case locksteward.ActLift:
			return "Somebody else holds the lock now. Nothing was touched."
		}
		return "Not released: the lock changed since the request. Nothing was touched."
	case locksteward.RequestFailed:
		return "Not released: " + o.Reason + ". Nothing was touched."
	default:
		return "Not known whether the lock was released: " + o.Reason + ". It is not tried again; look at the lock before you request another release."
	}
}

func doneSentence(e locksteward.Evidence, woken int64) string {
	told := ""
	switch {
	case woken == 1:
		told = " and 1 waiting client was told"
	case woken > 1:
		told = fmt.Sprintf(" and %d waiting clients were told", woken)
	}
	switch {
	case e.Act == locksteward.ActUndo:
		return "Undone: the lock stands again, with the expiry that it had. What its library keeps beside it did not come back."
	case e.Act == locksteward.ActLift:
		return "Released: what stood in the lock's place was deleted" + told + "."
	case e.Act == locksteward.ActTakeOver:
		return fmt.Sprintf("Taken over: nobody gets the lock for %s, or until that is ended.", e.Stand)
	case e.Stand > 0:
		return fmt.Sprintf("Released: the lock was deleted, and nobody gets it for %s.", e.Stand)
	default:
		return "Released: the lock was deleted" + told + "."
	}
}
