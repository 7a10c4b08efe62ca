package dialect

import (
	_ "embed" // for the scripts
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/lock/record"
)

// ExecTTL is how long the record of a release stays beside the lock, for a
// reply that was lost or an agent that crashed to be resolved by reading.
const ExecTTL = 7 * 24 * time.Hour

//go:embed opening.lua
var openingLua string

// String returns "released", "already_gone", "changed" or "repeated".
func (o Outcome) String() string {
	switch o {
	case OutcomeReleased:
		return "released"
	case OutcomeAlreadyGone:
		return "already_gone"
	case OutcomeChanged:
		return "changed"
	case OutcomeRepeated:
		return "repeated"
	default:
		return fmt.Sprintf("outcome(%d)", int64(o))
	}
}

// Reply is what a release script answered.
type Reply struct {
	// Outcome is what this run did; OutcomeRepeated if the request ran before.
	Outcome Outcome
	// Woken is how many clients received the wake-up, on the node that ran the
	// script: the subscribers of other Cluster nodes are not counted.
	Woken int64
	// Recorded is what the request did when it first ran: equal to Outcome
	// unless that is OutcomeRepeated.
	Recorded Outcome
}

// ParseReply reads a release script's reply as go-redis gives it ([]any of
// int64). An error means that the outcome is not known.
func ParseReply(reply any) (Reply, error) {
	list, ok := reply.([]any)
	if !ok || len(list) != 3 {
		return Reply{}, fmt.Errorf("parse release reply: got %T of %d, want three numbers", reply, len(list))
	}
	var numbers [3]int64
	for i, element := range list {
		if numbers[i], ok = element.(int64); !ok {
			return Reply{}, fmt.Errorf("parse release reply: element %d is %T, want a number", i, element)
		}
	}
	r := Reply{Outcome: Outcome(numbers[0]), Woken: numbers[1], Recorded: Outcome(numbers[2])}
	if r.Outcome < OutcomeRepeated || r.Outcome > OutcomeReleased || r.Recorded < OutcomeChanged || r.Recorded > OutcomeReleased {
		return Reply{}, fmt.Errorf("parse release reply: unknown outcome %d, %d", numbers[0], numbers[2])
	}
	return r, nil
}

// plan is what the releases of all dialects have in common.
type plan struct {
	decoded Decoded
	prefix  string
	keys    []string // lock, exec record
	args    []any    // as opening.lua takes them
}

// planRelease checks that the sample is one that dialect name may release.
func planRelease(name string, s Sample, r Release) (plan, error) {
	refuse := func(why string) error {
		return fmt.Errorf("release %q: %s: %w", locksteward.DisplayKey(s.Key), why, locksteward.ErrRefused)
	}
	if r.RequestID == "" {
		return plan{}, fmt.Errorf("release %q: request id is empty: %w", locksteward.DisplayKey(s.Key), locksteward.ErrInvalid)
	}
	if _, _, helper := Companion(s.Key); helper || isWorkCounter(s) {
		return plan{}, refuse("the key belongs to a lock library but is no lock")
	}
	decoded := Recognise(s)
	if decoded.Dialect != name {
		return plan{}, refuse(fmt.Sprintf("it is not a %s lock but %s; look at it again", name, decoded.Dialect))
	}
	if r.ExpireAt <= 0 && r.ExpireAt != locksteward.NoExpireAt {
		return plan{}, refuse("its expiry is not known, so it cannot be compared; scan it again")
	}
	prefix := r.MetaPrefix
	if prefix == "" {
		prefix = record.DefaultPrefix
	}
	return plan{
		decoded: decoded,
		prefix:  prefix,
		keys:    []string{s.Key, record.Companion(prefix, record.KindExec, s.Key)},
		args:    []any{r.RequestID, r.ExpireAt, ExecTTL.Milliseconds()},
	}, nil
}

// refuse says why a lock that was recognised cannot be released, and where the
// way by hand stands.
func (p plan) refuse(why string, args ...any) error {
	return fmt.Errorf("release %q: %s: %w; see docs/dialects/%s.md for the way by hand",
		locksteward.DisplayKey(p.keys[0]), fmt.Sprintf(why, args...), locksteward.ErrRefused, p.decoded.Dialect)
}

// command puts the dialect's script behind the common opening.
func (p plan) command(script string, keys []string, args ...any) Command {
	return Command{
		Script: openingLua + "\n" + script,
		Keys:   append(p.keys, keys...),
		Args:   append(p.args, args...),
	}
}
