package release

import (
	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// OutcomeMessage returns what to say of the outcome of a request with that evidence.
func OutcomeMessage(e locksteward.Evidence, o source.Outcome) locksteward.Message {
	m := outcomeMessage(e, o)
	if o.ConfirmedBy == source.ConfirmedByRecord {
		return locksteward.NewMessage("release.recorded", m)
	}
	return m
}

func outcomeMessage(e locksteward.Evidence, o source.Outcome) locksteward.Message {
	switch o.State {
	case locksteward.RequestReleased:
		return done(e, o.WaitersWoken)
	case locksteward.RequestAlreadyGone:
		switch e.Act {
		case locksteward.ActUndo:
			return locksteward.NewMessage("release.gone-undo")
		case locksteward.ActLift:
			return locksteward.NewMessage("release.gone-lift")
		}
		return locksteward.NewMessage("release.gone")
	case locksteward.RequestChanged:
		switch e.Act {
		case locksteward.ActUndo:
			return locksteward.NewMessage("release.changed-undo")
		case locksteward.ActLift:
			return locksteward.NewMessage("release.changed-lift")
		}
		return locksteward.NewMessage("release.changed")
	case locksteward.RequestFailed:
		return locksteward.NewMessage("release.failed", o.Reason)
	default:
		return locksteward.NewMessage("release.unknown", o.Reason)
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
		return locksteward.NewMessage("release.taken-over", e.Placeholder.String())
	case e.Placeholder > 0:
		return locksteward.NewMessage("release.done-delay", e.Placeholder.String())
	default:
		return locksteward.NewMessage("release.done", wakeUp)
	}
}
