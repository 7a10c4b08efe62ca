package formats

import (
	"cmp"
	_ "embed" // for the scripts
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/lock/record"
)

// ExecTTL is how long the record of a release is kept: a lost reply or a crashed
// agent is resolved by reading it.
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

// Release returns the one script that removes exactly the hold in s and wakes its
// waiters. An error that wraps locksteward.ErrRefused says why it cannot be done
// safely.
func (f *Format) Release(s Sample, r Release) (Command, error) {
	if f.Name == Unknown {
		return Command{}, refuseUnknown(s)
	}
	p, err := f.plan(s, r)
	if err != nil {
		return Command{}, err
	}
	if f.release == nil {
		return Command{}, p.refuse("%s", f.Never)
	}
	return f.release(s, p)
}

// plan is what the releases of all formats have in common.
type plan struct {
	format  string
	decoded Decoded // zero when a placeholder is lifted
	prefix  string
	keys    []string // lock, exec record
	args    []any    // in the order of opening.lua
	aside   []string // where the lock is set aside, if it is
	options scriptOptions
}

// plan checks that the sample is one that the format may release.
func (f *Format) plan(s Sample, r Release) (plan, error) {
	refuse := func(why string) error { return &Refusal{Key: s.Key, Format: f.Name, Why: why} }
	if err := r.check(s.Key); err != nil {
		return plan{}, err
	}
	if _, _, auxiliary := AuxiliaryKey(s.Key); auxiliary || isWorkCounter(s) {
		return plan{}, refuse("the key belongs to a lock library but is no lock")
	}
	decoded := Recognise(s)
	if decoded.Format != f.Name {
		return plan{}, refuse(fmt.Sprintf("it is not a %s lock but %s; look at it again", f.Name, decoded.Format))
	}
	if IsPlaceholder(s) {
		return plan{}, refuse("it is marked as the placeholder of a release: end that release; if none is known that put it there (the lock is shown as unverified), another client wrote it, so find out which")
	}
	if r.ExpireAt <= 0 && r.ExpireAt != locksteward.NoExpireAt {
		return plan{}, refuse("its expiry is not known, so it cannot be compared; scan it again")
	}
	p := newPlan(f.Name, s.Key, r)
	p.decoded = decoded
	if r.Undo > 0 && WhyNoUndo(f.Name) == "" {
		p.setAside(s.Key, r.Undo)
	}
	if r.Placeholder > 0 {
		if why := WhyNoPlaceholder(f.Name, r.ExpireAt); why != "" {
			return plan{}, refuse("nothing can stand in its place: " + why)
		}
		p.options.Placeholder = f.placeholderOf(r.RequestID, r.Placeholder.Milliseconds())
		if p.aside == nil {
			p.setAside(s.Key, 0)
		}
	}
	p.options.Alive = r.HolderAlive
	if r.HolderAlive {
		p.args[1] = "" // any expiry
	}
	return p, nil
}

func newPlan(format, key string, r Release) plan {
	prefix := cmp.Or(r.MetaPrefix, record.DefaultPrefix)
	return plan{
		format: format, prefix: prefix,
		keys: []string{key, record.Companion(prefix, record.KindExec, key)},
		args: []any{r.RequestID, r.ExpireAt, ExecTTL.Milliseconds()},
	}
}

func (r Release) check(key string) error {
	if r.RequestID == "" {
		return fmt.Errorf("release %q: request id is empty: %w", locksteward.DisplayKey(key), locksteward.ErrInvalid)
	}
	return nil
}

func (p *plan) setAside(key string, undo time.Duration) {
	ms := undo.Milliseconds()
	p.options.Aside = &ms
	p.aside = []string{record.Companion(p.prefix, record.KindUndo, key)}
}

// refuse returns why a lock that was recognised cannot be released.
func (p plan) refuse(why string, args ...any) error {
	return &Refusal{Key: p.keys[0], Format: p.format, Why: fmt.Sprintf(why, args...)}
}

// volatile is an argument that a renewal changes: it is not compared when the
// holder is known to renew.
func (p plan) volatile(value any) any {
	if p.options.Alive {
		return ""
	}
	return value
}

// memberArgs returns all members of a sorted set with their scores, in ms.
func (p plan) memberArgs(s Sample) []any {
	args := make([]any, 0, 2*len(s.Members))
	for _, m := range s.Members {
		args = append(args, m.Name, p.volatile(int64(m.Score)))
	}
	return args
}

// fieldArgs returns all fields and values of a hash, in the order of their names.
func fieldArgs(s Sample) []any {
	args := make([]any, 0, 2*len(s.Fields))
	for _, field := range slices.Sorted(maps.Keys(s.Fields)) {
		args = append(args, field, s.Fields[field])
	}
	return args
}

// formatScore writes a score so that Lua reads the same number.
func formatScore(score float64) string { return strconv.FormatFloat(score, 'g', 17, 64) }

// sameSlot reports whether one script may use all keys on a Cluster.
func sameSlot(keys ...string) bool {
	for _, key := range keys[1:] {
		if record.Slot(key) != record.Slot(keys[0]) {
			return false
		}
	}
	return true
}

// command returns the format's script behind the common opening.
func (p plan) command(script string, keys []string, args ...any) Command {
	return Command{
		Script: openingLua + "\n" + script,
		Keys:   slices.Concat(p.keys, keys, p.aside),
		Args:   slices.Concat(p.args, args, []any{p.options.json()}),
	}
}
