package rules

import (
	"maps"
	"slices"

	"github.com/locksteward/locksteward"
)

// ServerRestarted is the name of the rule that finds restarts.
const ServerRestarted = "server/restarted"

// serverRestarted reports servers that were restarted lately, and the locks that they
// lost: one finding instead of one for each of them.
type serverRestarted struct{}

var serverRestartedDoc = Doc{
	Name:     ServerRestarted,
	Title:    "The server was restarted",
	Scope:    ScopeTarget,
	Since:    "0.1.0",
	Severity: locksteward.SeverityCritical,
	SeverityNote: "warning where more locks are left than lost, info for one or two lost beside others, which may have ended by themselves, " +
		"and where none is lost",
	Cause:  message("server/restarted.cause"),
	Remedy: message("server/restarted.remedy"),
}

// Doc implements [Rule].
func (serverRestarted) Doc() Doc { return serverRestartedDoc }

// Evaluate implements [Rule].
func (serverRestarted) Evaluate(in Input) Verdict {
	events := in.Situation.happened(locksteward.ServerRestarted)
	if in.Situation == nil {
		return in.notApplicable(because(noSweep))
	}
	if len(events) == 0 {
		return in.clear(because("no server of the target was seen to restart lately"))
	}
	f := locksteward.Finding{
		Severity: locksteward.SeverityInfo,
		Summary:  message("server/restarted.summary", nodesOf(events)),
		Evidence: append(newest(events), join(pauseLine(in), backLine(events))...),
	}
	lost, stood, keys := 0, 0, []locksteward.Arg(nil)
	for _, e := range events {
		lost += e.Locks
		if e.Locks > 0 {
			stood += e.Stood
		}
		for _, key := range e.Keys {
			keys = append(keys, locksteward.LockName(key))
		}
	}
	if lost == 0 {
		return in.fires(f)
	}
	f.Severity = restartSeverity(lost, stood)
	f.Summary = message("server/restarted.summary-lost", message("count.locks", int64(lost)), nodesOf(events))
	left := message("server/restarted.none-left")
	if stood > 0 {
		left = message("server/restarted.left", message("count.locks-left", int64(stood)))
	}
	f.Evidence = append(f.Evidence, join(startedLine(events),
		message("server/restarted.lost", examples(keys, lost)),
		lostClassesLine(events), left)...)
	f.CounterEvidence = join(message("server.may-be-released"))
	return in.fires(f)
}

// restartSeverity says how sure it is that a restart lost locks: one or two of many may
// have been released meanwhile, and all of them were not.
func restartSeverity(lost, stood int) locksteward.Severity {
	switch {
	case stood == 0, lost >= minFlushed && lost >= stood:
		return locksteward.SeverityCritical
	case lost >= minFlushed:
		return locksteward.SeverityWarning
	default:
		return locksteward.SeverityInfo
	}
}

// startedLine says since when the processes run that lost locks.
func startedLine(events []locksteward.ServerEvent) locksteward.Message {
	var parts []locksteward.Message
	for _, e := range events {
		if e.Locks > 0 && !e.Started.IsZero() && len(parts) < maxExamples {
			parts = append(parts, message("server/restarted.started-since", locksteward.DisplayKey(e.Node), e.Started))
		}
	}
	if len(parts) == 0 {
		return locksteward.Message{}
	}
	return message("server/restarted.started", list(parts))
}

// lostClassesLine counts the lost locks by class.
func lostClassesLine(events []locksteward.ServerEvent) locksteward.Message {
	classes := map[string]int{}
	for _, e := range events {
		for name, n := range e.Classes {
			classes[name] += n
		}
	}
	var parts []locksteward.Message
	for _, name := range slices.Sorted(maps.Keys(classes)) {
		if len(parts) == maxExamples {
			parts = append(parts, message("server/restarted.more-classes", len(classes)-maxExamples))
			break
		}
		parts = append(parts, message("server/restarted.class", locksteward.DisplayKey(name), classes[name]))
	}
	if len(parts) == 0 {
		return locksteward.Message{}
	}
	return message("server/restarted.lost-by-class", list(parts))
}
