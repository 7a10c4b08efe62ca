package rules

import (
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// Rule is one judgement. Implementations are stateless and safe for concurrent
// use.
type Rule interface {
	// Doc describes the rule; it always returns the same.
	Doc() Doc
	// Evaluate judges the one subject in in that Doc().Scope names. It never
	// panics, whatever the input.
	Evaluate(in Input) Verdict
}

// Scope is what a rule judges.
type Scope string

const (
	// ScopeLock judges one lock that is held now: Input.Lock.
	ScopeLock Scope = "lock"
	// ScopeLoss judges one hold that ended without a release: Input.Loss.
	ScopeLoss Scope = "loss"
	// ScopeClass judges all locks of one class on one target: Input.Group.
	ScopeClass Scope = "class"
	// ScopeWaiters judges those who wait for one lock: Input.Waiters, and
	// Input.Lock, nil where nobody is known to have it.
	ScopeWaiters Scope = "waiters"
	// ScopeCycle judges sessions that wait for each other: Input.Cycle.
	ScopeCycle Scope = "cycle"
	// ScopeOrder judges two classes of one target that are taken in both orders:
	// Input.Inversion.
	ScopeOrder Scope = "order"
	// ScopeActivity judges what the processes did with the locks of one class of
	// a target: Input.Activity.
	ScopeActivity Scope = "activity"
	// ScopeHost judges all locks and losses of one host on one target: Input.Host.
	// A host is judged on complete sweeps or not at all.
	ScopeHost Scope = "host"
	// ScopeTarget judges the servers of one target: Input.Situation.
	ScopeTarget Scope = "target"
)

// Doc is what is said of a rule itself; docs/rules is tested against it.
type Doc struct {
	// Name is the rule's id, "group/name". It never changes its meaning.
	Name  string
	Title string
	Scope Scope
	// Since is the first version that has the rule.
	Since string
	// Severity is the default; SeverityNote says when a finding has another.
	Severity     locksteward.Severity
	SeverityNote string
	// For is how long the rule must say so before its finding fires.
	For time.Duration
	// Risk is locksteward.RiskDeadlock or "".
	Risk string
	// Cause and Remedy are the usual ones; a verdict may know better.
	Cause  locksteward.Message
	Remedy locksteward.Message
}

// Page is the path of the rule's page in the repository.
func (d Doc) Page() string {
	if isCustom(d.Name) {
		return customPage
	}
	return "docs/rules/" + d.Name + ".md"
}

// Input is what a rule judges. Only the fields that its scope names are set,
// and those that say so.
type Input struct {
	// Now is the server time of the look.
	Now   time.Time
	Class class.Class
	Lock  *locksteward.Lock
	// LibraryFacts are what is known of the lock's library.
	LibraryFacts locksteward.LibraryFacts
	Loss         *locksteward.Loss
	// Group is all locks of the class: a class is judged on complete sweeps or not
	// at all.
	Group *Group
	// Waiters are all who wait for one lock, the longest first.
	Waiters   []locksteward.Waiter
	Cycle     *Cycle
	Inversion *Inversion
	Activity  *Activity
	Host      *Host
	// Situation is set for every scope: what is known of the target beyond its
	// locks; nil before its first sweep. situations are those of all targets.
	Situation  *Situation
	situations map[string]*Situation
	// Quorum says where a lock of a Redlock is held; nil for any other.
	Quorum *Quorum

	// explain asks for the reason even of a rule that has nothing to say.
	explain bool
}

// Result is what a rule makes of a subject.
type Result string

const (
	// Fires is "this is wrong"; the verdict has a finding.
	Fires Result = "fires"
	// Clear is "judged, and nothing is wrong".
	Clear Result = "clear"
	// NotApplicable is "this rule has nothing to say here", for want of a fact or
	// by policy.
	NotApplicable Result = "not_applicable"
	// Off is "the configuration switched this rule off".
	Off Result = "off"
)

// Verdict is what one rule makes of one subject.
type Verdict struct {
	Rule   string
	Result Result
	// Reason is one English sentence without a full stop that says why.
	Reason string
	// Finding is nil unless Result is Fires. From Rule.Evaluate it has the
	// summary, the evidence and what differs from the rule's Doc (severity,
	// cause, remedy); the engine fills in the rest.
	Finding *locksteward.Finding
}

// fires returns the verdict that f is wrong. Its summary is the reason.
func (in Input) fires(f locksteward.Finding) Verdict {
	v := Verdict{Result: Fires, Finding: &f}
	if in.explain {
		v.Reason = english(f.Summary)
	}
	return v
}

// clear returns the verdict that nothing is wrong. The reason is a function so
// that a sweep of 100,000 healthy locks does not format text for nobody.
func (in Input) clear(reason func() string) Verdict { return in.quiet(Clear, reason) }

// notApplicable returns the verdict that the rule has nothing to say.
func (in Input) notApplicable(reason func() string) Verdict { return in.quiet(NotApplicable, reason) }

func (in Input) quiet(result Result, reason func() string) Verdict {
	if !in.explain {
		return Verdict{Result: result}
	}
	return Verdict{Result: result, Reason: reason()}
}

// because is a reason that needs no formatting.
func because(reason string) func() string { return func() string { return reason } }

// All returns the rules in the order of their names.
func All() []Rule {
	return []Rule{
		contentionHigh{},
		fenceRegressed{},
		holdLost{},
		holdTooLong{},
		holderDead{},
		sharedToken{},
		holderStranded{},
		hostLost{},
		migrationDirty{},
		redlockMinority{},
		renewalFailing{},
		renewalZombie{},
		serverEvictsLocks{},
		serverFailover{},
		serverFlushed{},
		serverNotDurable{},
		serverRefusesWrites{},
		serverRestarted{},
		ttlNone{},
		ttlRunningOut{},
		ttlTooLong{},
		waitCycle{},
		handoffLapsed{},
		orderInversion{},
		waitStarved{},
	}
}

// Names returns the ids of all rules, sorted.
func Names() []string {
	var names []string
	for _, r := range All() {
		names = append(names, r.Doc().Name)
	}
	return names
}

// Lookup returns the description of the rule called name.
func Lookup(name string) (Doc, bool) {
	for _, r := range All() {
		if d := r.Doc(); d.Name == name {
			return d, true
		}
	}
	return Doc{}, false
}

// Notifies reports whether people are notified of f: of critical and warning findings,
// while info is only reported, and not of one that another finding inhibits.
func Notifies(f locksteward.Finding) bool {
	return f.Severity >= locksteward.SeverityWarning && f.InhibitedBy == ""
}
