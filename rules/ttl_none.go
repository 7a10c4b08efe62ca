package rules

import (
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// TTLNone is the id of the rule whose pending findings are worth a second look
// after [RecheckAfter].
const TTLNone = "ttl/none"

// RecheckAfter is how long a lock must be seen without TTL before the rule fires: many
// libraries take a lock and set its TTL with two commands. A lock that had a TTL before
// needs a quarter of that, see [Engine.NextLook]. A caller that wants the answer soon
// reads the pending locks again after this long and passes them to
// [Engine.EvaluateDirect]; [Engine.Due] names them.
const RecheckAfter = 2 * time.Second

// lostAfter is the same for a hold that had a TTL when it was read before. Its owner may
// be between two commands that replace value and TTL. A finding about a watched lock is
// thus made within a second.
const lostAfter = 500 * time.Millisecond

// lostTTL reports whether the hold had a TTL. Under a constant token, or where the value
// was not read, an earlier reading may be of another hold, and the TTL of this one may
// still be set.
func lostTTL(l *locksteward.Lock) bool {
	return l.TTL == locksteward.NoExpiry && l.History.HadTTL && !l.SharedToken && l.TokenDigest != ""
}

// youngLock is the age below which a lock without TTL may still get one.
const youngLock = 10 * time.Second

// ttlNone reports locks that no crash will ever free.
type ttlNone struct{}

var ttlNoneDoc = Doc{
	Name:         TTLNone,
	Title:        "A lock has no TTL",
	Scope:        ScopeLock,
	Since:        "0.1.0",
	Severity:     locksteward.SeverityCritical,
	SeverityNote: "info for libraries whose locks have no TTL by design, unless the class says ttl: required",
	For:          RecheckAfter,
	Risk:         locksteward.RiskDeadlock,
	Cause:        message("ttl/none.cause"),
	Remedy:       message("ttl/none.remedy"),
}

// ttlNoneLost is the cause for any other lock that had a TTL.
var ttlNoneLost = message("ttl/none.cause-ttl-removed")

// ttlNoneElsewhere are the causes in stores other than Redis, by the type of the lock: a row of a
// database, a key of etcd, a node of ZooKeeper.
var ttlNoneElsewhere = map[string]locksteward.Message{
	"row": message("ttl/none.cause-row"), "key": message("ttl/none.cause-etcd"), "persistent": message("ttl/none.cause-znode"),
}

// Doc implements [Rule].
func (ttlNone) Doc() Doc { return ttlNoneDoc }

// Evaluate implements [Rule].
func (ttlNone) Evaluate(in Input) Verdict {
	l := in.Lock
	if l.TTL != locksteward.NoExpiry {
		return in.clear(func() string { return english(ttlLine(l)) })
	}
	if l.Lifetime == locksteward.LifetimeSession {
		return in.notApplicable(because("it ends with the session of its holder"))
	}
	if l.Type == locksteward.TypeDirtyMigration {
		return in.notApplicable(because("it is the mark of a migration, not a lock"))
	}
	if in.Class.TTL == class.TTLAllowedNone {
		return in.notApplicable(func() string {
			return fmt.Sprintf("class %q allows locks without TTL", in.Class.Name)
		})
	}
	key := locksteward.LockName(l.Key)
	severity := locksteward.SeverityCritical
	if in.LibraryFacts.NoTTLByDesign && in.Class.TTL != class.TTLRequired {
		severity = locksteward.SeverityInfo
	}
	cause, remedy := in.LibraryFacts.NoTTLCause, locksteward.Message{}
	if elsewhere, ok := ttlNoneElsewhere[l.Type]; ok {
		cause, remedy = elsewhere, message("ttl/none.remedy-stores")
	} else if cause.ID == "" && lostTTL(l) {
		cause = ttlNoneLost
	}
	return in.fires(locksteward.Finding{
		Severity: severity,
		Summary:  message("ttl/none.summary", key),
		Evidence: join(
			message("ttl/none.no-expiry"),
			ttlNoneLostLine(l),
			seenLine(l, in.Now),
			idleLine(l),
			ttlNoneLibraryLine(l),
			holderLine(l.Holder),
			silentLine(l, in.Now),
			waitersLine(l),
		),
		CounterEvidence: join(
			ttlNoneYoungLine(l, in.Now),
			ttlNoneTurnoverLine(l),
			aliveLine(l, in.Now),
			nameOnlyLine(l),
			ttlNoneDesignLine(in),
		),
		Cause:  cause,
		Remedy: remedy,
	})
}

func ttlNoneLibraryLine(l *locksteward.Lock) locksteward.Message {
	if l.Library == "" {
		return locksteward.Message{}
	}
	return message("ttl/none.library", l.Library)
}

// ttlNoneLostLine is evidence that the TTL was taken away.
func ttlNoneLostLine(l *locksteward.Lock) locksteward.Message {
	if !lostTTL(l) {
		return locksteward.Message{}
	}
	return message("ttl/none.ttl-removed")
}

// ttlNoneDesignLine is the doubt that the library would have it otherwise.
func ttlNoneDesignLine(in Input) locksteward.Message {
	if !in.LibraryFacts.NoTTLByDesign {
		return locksteward.Message{}
	}
	return message("ttl/none.design", in.Lock.Library)
}

// ttlNoneYoungLine is the doubt that the TTL is still to be set.
func ttlNoneYoungLine(l *locksteward.Lock, now time.Time) locksteward.Message {
	if lostTTL(l) || max(seenFor(l, now), l.Idle) >= youngLock {
		return locksteward.Message{}
	}
	return message("ttl/none.young", seenFor(l, now))
}

// ttlNoneTurnoverLine is the doubt that the looks saw one and the same hold.
func ttlNoneTurnoverLine(l *locksteward.Lock) locksteward.Message {
	if !l.SharedToken || l.History.Looks < 2 {
		return locksteward.Message{}
	}
	return message("ttl/none.turnover")
}
