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

// by returns the result as it was confirmed.
func (r Result) by(c Confirmation) Result {
	if r.ConfirmedBy = c; c == ConfirmedByRecord {
		r.Outcome = locksteward.NewMessage("release.recorded", r.Outcome)
	}
	return r
}

// resultOf is what the scripts' outcomes mean for a request.
func resultOf(e locksteward.Evidence, o formats.Outcome, woken int64) (Result, error) {
	switch o {
	case formats.OutcomeReleased:
		return Result{State: locksteward.RequestReleased, WaitersWoken: woken, Outcome: done(e, woken)}, nil
	case formats.OutcomeAlreadyGone:
		return resultGone(e), nil
	case formats.OutcomeChanged:
		return resultChanged(e, []string{"it changed in the moment of the release"}), nil
	default:
		return Result{}, fmt.Errorf("unknown outcome %d in the record of the release", int64(o))
	}
}

// done is the outcome of an act that was carried out.
func done(e locksteward.Evidence, woken int64) locksteward.Message {
	var wakeUp locksteward.Message
	if woken > 0 {
		wakeUp = locksteward.NewMessage("release.woken", woken)
	}
	switch {
	case e.Act == locksteward.ActUndo:
		return locksteward.NewMessage("release.undone")
	case e.Act == locksteward.ActLift:
		return locksteward.NewMessage("release.lifted", wakeUp)
	case e.Act == locksteward.ActTakeOver:
		return locksteward.NewMessage("release.taken-over", e.Stand.String())
	case e.Stand > 0:
		return locksteward.NewMessage("release.done-delay", e.Stand.String())
	default:
		return locksteward.NewMessage("release.done", wakeUp)
	}
}

func resultGone(e locksteward.Evidence) Result {
	r := Result{
		State:   locksteward.RequestAlreadyGone,
		Outcome: locksteward.NewMessage("release.gone"),
	}
	switch e.Act {
	case locksteward.ActUndo:
		r.Outcome = locksteward.NewMessage("release.gone-undo")
	case locksteward.ActLift:
		r.Outcome = locksteward.NewMessage("release.gone-lift")
	}
	return r
}

func resultChanged(e locksteward.Evidence, diff []string) Result {
	r := Result{
		State:       locksteward.RequestChanged,
		Outcome:     locksteward.NewMessage("release.changed"),
		Differences: diff,
	}
	switch e.Act {
	case locksteward.ActUndo:
		r.Outcome, r.Differences = locksteward.NewMessage("release.changed-undo"), nil
	case locksteward.ActLift:
		r.Outcome, r.Differences = locksteward.NewMessage("release.changed-lift"), nil
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
