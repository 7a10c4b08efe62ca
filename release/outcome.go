package release

import (
	"fmt"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// Confirmation is what told of an outcome. It is a word of the audit trail.
type Confirmation string

// The confirmations. Where nothing was sent, or the server knows of nothing, there
// is none: what was looked at tells then.
const (
	ConfirmedByAnswer Confirmation = "answer" // the script's own answer
	ConfirmedByRecord Confirmation = "record" // what the script left beside the lock, read later
)

// recordedSentence follows the outcome where the answer did not come.
const recordedSentence = " Its answer was lost: confirmed by the execution record."

// by returns the result as it was confirmed.
func (r Result) by(c Confirmation) Result {
	if r.ConfirmedBy = c; c == ConfirmedByRecord {
		r.Outcome += recordedSentence
	}
	return r
}

// resultOf is what the scripts' outcomes mean for a request.
func resultOf(e locksteward.Evidence, o formats.Outcome, woken int64) (Result, error) {
	switch o {
	case formats.OutcomeReleased:
		return Result{State: locksteward.RequestReleased, WaitersWoken: woken, Outcome: doneSentence(e, woken)}, nil
	case formats.OutcomeAlreadyGone:
		return resultGone(e), nil
	case formats.OutcomeChanged:
		return resultChanged(e, []string{"it changed in the moment of the release"}), nil
	default:
		return Result{}, fmt.Errorf("unknown outcome %d in the record of the release", int64(o))
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
		return fmt.Sprintf("Taken over: nobody gets the lock for %s, or until that is ended.", e.Placeholder)
	case e.Placeholder > 0:
		return fmt.Sprintf("Released: the lock was deleted, and nobody gets it for %s.", e.Placeholder)
	default:
		return "Released: the lock was deleted" + told + "."
	}
}

func resultGone(e locksteward.Evidence) Result {
	r := Result{
		State:   locksteward.RequestAlreadyGone,
		Outcome: "Not released: the lock had ended by itself. Nothing was touched.",
	}
	switch e.Act {
	case locksteward.ActUndo:
		r.Outcome = "Not undone: the lock is not kept any more; its own time or that for an undo is over. Nothing was touched."
	case locksteward.ActLift:
		r.Outcome = "Nothing stood in the lock's place any more. Nothing was touched."
	}
	return r
}

func resultChanged(e locksteward.Evidence, diff []string) Result {
	r := Result{
		State:       locksteward.RequestChanged,
		Outcome:     "Not released: the lock changed since the request. Nothing was touched.",
		Differences: diff,
	}
	switch e.Act {
	case locksteward.ActUndo:
		r.Outcome, r.Differences = "Not undone: somebody holds the lock now. Nothing was touched.", nil
	case locksteward.ActLift:
		r.Outcome, r.Differences = "Somebody else holds the lock now. Nothing was touched.", nil
	}
	return r
}

// withdrawn is the outcome of a request without a record.
func withdrawn(was locksteward.Evidence, now look) Result {
	if was.Act == locksteward.ActUndo || was.Act == locksteward.ActLift {
		return withdrawnFollowUp(was, now)
	}
	same := now.found && len(differences(was, now.evidence)) == 0
	switch {
	case was.Identity == locksteward.IdentityNone && same:
		return unknown("the server has no record of it, and this lock cannot be told from the next of its name")
	case same:
		return failed("it was not carried out and is withdrawn; the lock is still held")
	case was.Identity == locksteward.IdentityStrong && now.found && was.TokenDigest == now.evidence.TokenDigest:
		// A token that is fresh for each acquisition does not come again.
		return failed("it was not carried out and is withdrawn; the lock is still held and was renewed")
	default:
		return unknown("the server has no record of it, and the lock is not as it was")
	}
}

// standsFor is the request whose placeholder was read; "" for none.
func standsFor(s formats.Sample) string {
	id, _ := formats.PlaceholderRequest(s)
	return id
}

// withdrawnFollowUp is withdrawn for an act on what an earlier one left.
func withdrawnFollowUp(was locksteward.Evidence, now look) Result {
	switch {
	case was.Act == locksteward.ActLift && now.found && standsFor(now.sample) == was.Of:
		return failed("it was not carried out and is withdrawn; what stands in the lock's place is still there")
	case was.Act == locksteward.ActUndo && !now.found:
		return failed("it was not carried out and is withdrawn; the lock is free")
	default:
		return unknown("the server has no record of it")
	}
}
