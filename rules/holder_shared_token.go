package rules

import (
	"cmp"
	"maps"
	"slices"

	"github.com/locksteward/locksteward"
)

// maxExamples is how many keys a finding about a class names.
const maxExamples = 5

// sharedToken reports classes whose locks any client could release.
type sharedToken struct{}

var sharedTokenDoc = Doc{
	Name:     "holder/shared-token",
	Title:    "Locks of a class have a constant or shared token",
	Scope:    ScopeClass,
	Since:    "0.1.0",
	Severity: locksteward.SeverityInfo,
	Cause:    message("holder/shared-token.cause"),
	Remedy:   message("holder/shared-token.remedy"),
}

// Doc implements [Rule].
func (sharedToken) Doc() Doc { return sharedTokenDoc }

// Evaluate implements [Rule].
func (sharedToken) Evaluate(in Input) Verdict {
	g := in.Group
	if g == nil || g.Shared == 0 {
		return in.clear(because("the token is not known to be constant or shared"))
	}
	return in.fires(locksteward.Finding{
		Library:         g.Library,
		Summary:         message("holder/shared-token.summary", locksteward.DisplayKey(in.Class.Name), g.Shared, g.Locks),
		Evidence:        []locksteward.Message{g.kindsLine(), g.examplesLine()},
		CounterEvidence: []locksteward.Message{message("holder/shared-token.release-unknown")},
	})
}

// Group is the locks of one class on one target, and what is known of those
// whose token is constant or shared.
type Group struct {
	Locks, Shared int
	Kinds         map[string]int // of token, how many
	Library       string         // "" if they differ
	Examples      []string       // the first keys
}

// add takes in a lock; locks come in the order of (DB, Key).
func (g *Group) add(l *locksteward.Lock) {
	g.Locks++
	if !l.SharedToken {
		return
	}
	if g.Shared++; g.Shared == 1 {
		g.Kinds, g.Library = map[string]int{}, l.Library
	}
	if g.Library != l.Library {
		g.Library = ""
	}
	g.Kinds[cmp.Or(l.TokenKind, unknownKind)]++
	if len(g.Examples) < maxExamples {
		g.Examples = append(g.Examples, l.Key)
	}
}

// unknownKind is the kind of a shared token of which nothing more is known.
const unknownKind = "a constant or shared value"

// tokenKinds are the messages of the kinds of shared tokens that formats tell.
var tokenKinds = map[string]locksteward.Message{
	unknownKind:                     message("token.shared"),
	"an empty value":                message("token.empty"),
	"a one-digit number":            message("token.digit"),
	"a short number":                message("token.short-number"),
	"a constant word":               message("token.constant-word"),
	"one character repeated":        message("token.repeated-character"),
	"the zero UUID":                 message("token.zero-uuid"),
	"a network address":             message("token.network-address"),
	"a host name with a process id": message("token.host-and-process"),
	"a short word":                  message("token.short-word"),
	"a host, worker or thread name": message("token.worker"),
}

// kindsLine counts the kinds of token, most frequent first.
func (g *Group) kindsLine() locksteward.Message {
	kinds := slices.SortedFunc(maps.Keys(g.Kinds), func(a, b string) int {
		return cmp.Or(cmp.Compare(g.Kinds[b], g.Kinds[a]), cmp.Compare(a, b))
	})
	var parts []locksteward.Message
	for _, k := range kinds {
		kind, known := tokenKinds[k]
		if !known {
			kind = locksteward.Literal(k)
		}
		parts = append(parts, message("holder/shared-token.kind-count", kind, message("count.locks", g.Kinds[k])))
	}
	return message("holder/shared-token.token", list(parts))
}

// examplesLine names the first few keys in their order.
func (g *Group) examplesLine() locksteward.Message {
	return locksLine(g.Examples, g.Shared)
}
