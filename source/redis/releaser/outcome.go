package releaser

import (
	"fmt"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// outcomeOf returns the outcome of a request by what its script answered or
// recorded.
func outcomeOf(act locksteward.Act, o formats.Outcome, woken int64, by source.Confirmation) (source.Outcome, error) {
	switch o {
	case formats.OutcomeReleased:
		return source.Outcome{State: locksteward.RequestReleased, WaitersWoken: woken, ConfirmedBy: by}, nil
	case formats.OutcomeAlreadyGone:
		return source.Outcome{State: locksteward.RequestAlreadyGone, ConfirmedBy: by}, nil
	case formats.OutcomeChanged:
		out := source.Outcome{State: locksteward.RequestChanged, ConfirmedBy: by}
		if act == locksteward.ActRelease || act == locksteward.ActTakeOver { // others compare no hold
			out.Differences = []string{"it changed in the moment of the release"}
		}
		return out, nil
	default:
		return source.Outcome{}, fmt.Errorf("unknown outcome %d in the record of the release", int64(o))
	}
}

// withdrawn returns the outcome of a request without a record.
func withdrawn(was locksteward.Evidence, now reading) source.Outcome {
	if was.Act == locksteward.ActUndo || was.Act == locksteward.ActLift {
		return withdrawnFollowUp(was, now)
	}
	same := now.Found && len(source.Differences(was, now.evidence)) == 0
	switch {
	case was.Identity == locksteward.IdentityNone && same:
		return source.Unknown("the server has no record of it, and this hold cannot be distinguished from the next one of that name")
	case same:
		return source.Failed("it was not carried out and is withdrawn; the lock is still held")
	case was.Identity == locksteward.IdentityStrong && now.Found && was.TokenDigest == now.evidence.TokenDigest:
		// A token that is fresh for each acquisition does not come again.
		return source.Failed("it was not carried out and is withdrawn; the lock is still held and was renewed")
	default:
		return source.Unknown("the server has no record of it, and the lock is not as it was")
	}
}

// withdrawnFollowUp is withdrawn for an act on what an earlier one left.
func withdrawnFollowUp(was locksteward.Evidence, now reading) source.Outcome {
	placedBy, _ := formats.PlaceholderRequest(now.Sample)
	switch {
	case was.Act == locksteward.ActLift && now.Found && placedBy == was.Of:
		return source.Failed("it was not carried out and is withdrawn; the placeholder is still there")
	case was.Act == locksteward.ActUndo && !now.Found:
		return source.Failed("it was not carried out and is withdrawn; the lock is free")
	default:
		return source.Unknown("the server has no record of it")
	}
}
