package rules

import (
	"slices"
	"time"

	"github.com/locksteward/locksteward"
)

// The reasons why a finding is over.
var (
	notFoundAgain = message("resolution.not-found-again")
	targetRemoved = message("resolution.target-removed")
	lossForgotten = message("resolution.loss-forgotten")
	eventPast     = message("resolution.event-past")
	lessSevere    = message("resolution.less-severe")
	byHolder      = message("resolution.released-by-holder")
)

// endedHow words how the hold of a finding ended, as far as can be seen from outside.
var endedHow = map[locksteward.EndedHow]locksteward.Message{
	locksteward.EndedReleased: message("resolution.released"),
	locksteward.EndedExpired:  message("resolution.expired"),
	locksteward.EndedDeleted:  message("resolution.deleted"),
	locksteward.EndedReplaced: message("resolution.replaced"),
	locksteward.EndedLapsed:   message("resolution.lapsed"),
}

// endedBy words the end of a hold that went with what happened to its server.
var endedBy = map[locksteward.ServerEventKind]locksteward.Message{
	locksteward.ServerRestarted:  message("resolution.server-restarted"),
	locksteward.ServerFailedOver: message("resolution.server-failed-over"),
	locksteward.ServerFlushed:    message("resolution.server-flushed"),
	locksteward.ServerEvicted:    message("resolution.server-evicted"),
}

// ReleasedBy is the resolution of a finding on a hold that a request for a release ended.
func ReleasedBy(request string) locksteward.Message {
	return message("resolution.released-by", request)
}

// mayBeReleased are the resolutions that leave open who ended the hold.
var mayBeReleased = []string{
	endedHow[locksteward.EndedReleased].ID, endedHow[locksteward.EndedDeleted].ID, endedHow[locksteward.EndedReplaced].ID,
}

// MayBeReleased says whether the resolution of f leaves open who ended the hold.
func MayBeReleased(f locksteward.Finding) bool {
	return f.Status == locksteward.StatusResolved && f.Key != "" && slices.Contains(mayBeReleased, f.Resolution.ID)
}

// whyEnded says why a finding on a hold is over that ended.
func (p *pass) whyEnded(end locksteward.Ending) locksteward.Message {
	by := end.By
	if by == "" && end.How == locksteward.EndedDeleted {
		by = worst(onNode(p.e.situations[p.target].suspects(end.Lock.History.LastSeen, p.orAt(end.At)), end.Lock.Node))
	}
	if text, ok := endedBy[by]; ok {
		return text
	}
	if end.How == locksteward.EndedReleased && end.ByHolder {
		return byHolder
	}
	if text, ok := endedHow[end.How]; ok {
		return text
	}
	return notFoundAgain
}

// whyUnseen says why a finding is over that a complete sweep did not confirm.
func whyUnseen(k *kind) locksteward.Message {
	switch {
	case k.scope == ScopeLoss:
		return lossForgotten
	case k.rule == ServerRestarted || k.rule == ServerFlushed || k.rule == serverFailoverDoc.Name:
		return eventPast
	default:
		return notFoundAgain
	}
}

// resolved is the finding as it ends.
func resolved(f locksteward.Finding, at time.Time, why locksteward.Message) locksteward.Finding {
	f.Status, f.ResolvedAt, f.Resolution = locksteward.StatusResolved, at, why
	return f
}
