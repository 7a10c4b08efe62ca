package lockcheck

import (
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// Rules say what the server was allowed to do during a history.
type Rules struct {
	// Drops lets a hold end at the server at any time, and not only once its
	// lease is over for its holder: somebody deleted locks, or a restart did.
	Drops bool
	// Strays lets a request take effect long after its client gave it up, or
	// took the answer to a copy of it: packets lay in some buffer.
	Strays bool
	// Timeout bounds the search for each lock. Default 20 s.
	Timeout time.Duration
}

// ServerView returns the locks whose answers no server can have given in any
// order, or for which that could not be decided in time. The model is a mutex with
// fence: an acquire succeeds only on a free lock and with a larger fence than
// any before, fails as held only while the holder it names (or anyone, if it
// names none) has the lock, and a release succeeds only by who has it. A hold
// that was not released may end by itself at any time from the end of its lease
// on. An acquire in the queue may be handed the lock before it returns, and lose
// it without a trace but what others learn meanwhile.
func ServerView(h History, rules Rules) []Violation {
	if rules.Timeout <= 0 {
		rules.Timeout = 20 * time.Second
	}
	parts := map[string][]porcupine.Operation{}
	add := func(lock string, client int, in step, call, ret int64) {
		parts[lock] = append(parts[lock], porcupine.Operation{ClientId: client, Input: in, Call: call, Return: max(call, ret)})
	}
	known := map[string]bool{}
	strange, handed := strangersFrom(h), waitsOf(h)
	for i, hold := range h.Holds {
		known[hold.ID] = true
		add(hold.Lock, i, step{op: opAcquire, id: hold.ID, fence: hold.Fence}, hold.Invoked, hold.Acquired)
		ends := max(hold.Until, hold.Acquired)
		if rules.Drops {
			ends = hold.Invoked
		}
		switch hold.Outcome {
		case Released:
			// With drops, a release that had to ask twice cannot tell its own
			// work from that of the client that dropped the lock.
			if !rules.Drops {
				add(hold.Lock, i, step{op: opRelease, id: hold.ID}, hold.ReleaseSent, hold.ReleaseDone)
				continue
			}
		case Lost:
			add(hold.Lock, i, step{op: opLost, id: hold.ID}, hold.ReleaseSent, hold.ReleaseDone)
		case Unknown:
			ends = min(ends, hold.ReleaseSent)
		}
		add(hold.Lock, i, step{op: opEnd, id: hold.ID}, ends, math.MaxInt64)
	}
	for i, a := range h.Attempts {
		if a.Outcome == Queued {
			add(a.Lock, len(h.Holds)+i, step{op: opFree}, a.Invoked, a.Returned)
		}
		if a.Outcome != Held {
			continue
		}
		from, some := strange[a.Lock]
		in := step{op: opHeld, strangers: rules.Strays || h.Killed || some && from < a.Returned}
		if known[a.Holder] {
			in.id = a.Holder
		} else if a.Holder != "" {
			in.id = stranger
		}
		in.again = rules.Strays
		if wait, queued := handed[a.Holder]; queued && wait.from <= a.Returned && a.Invoked <= wait.to {
			in.strangers, in.again = true, true
		}
		add(a.Lock, len(h.Holds)+i, in, a.Invoked, a.Returned)
	}
	model := mutex()
	var found []Violation
	for lock, ops := range parts {
		switch porcupine.CheckOperationsTimeout(model, ops, rules.Timeout) {
		case porcupine.Ok:
		case porcupine.Unknown:
			found = append(found, Violation{"server view", lock, fmt.Sprintf("not judged within %s: %d operations", rules.Timeout, len(ops))})
		default:
			found = append(found, Violation{"server view", lock, fmt.Sprintf("no order of its %d operations is that of a lock", len(ops))})
		}
	}
	return found
}

// strangersFrom returns for each lock from when on it may be had by an acquire
// of unknown outcome. Such a one may take the lock at any time after its call
// and lose it at any time after that: all that is ever seen of it is that others
// learn that somebody has the lock while no known hold does.
func strangersFrom(h History) map[string]int64 {
	from := map[string]int64{}
	for _, a := range h.Attempts {
		if a.Outcome != Unknown {
			continue
		}
		if at, seen := from[a.Lock]; !seen || a.Invoked < at {
			from[a.Lock] = a.Invoked
		}
	}
	return from
}

// span is a time from one moment to another.
type span struct{ from, to int64 }

// waitsOf returns when each acquisition waited in the queue, by its id. In that
// time a release may have handed it the lock for a turn that it did not hear of.
func waitsOf(h History) map[string]span {
	waits := map[string]span{}
	for _, hold := range h.Holds {
		if hold.Queued {
			waits[hold.ID] = span{hold.Invoked, hold.Acquired}
		}
	}
	for _, a := range h.Attempts {
		if a.Queued && a.ID != "" {
			waits[a.ID] = span{a.Invoked, a.Returned}
		}
	}
	return waits
}

// stranger is the id of a hold of which the history does not tell.
const stranger = "?"

type opKind uint8

const (
	opAcquire opKind = iota
	opHeld           // acquire that learnt that id has it; without id: somebody
	opFree           // acquire that learnt that it is free, and others are before
	opRelease
	opLost // release that learnt that id does not have it
	opEnd  // the server may free id from here on
)

type step struct {
	op        opKind
	id        string
	fence     int64
	strangers bool // opHeld: there may be some
	again     bool // opHeld: id may have had the lock another time than the hold that is known
}

// state is that of one lock at the server.
type state struct {
	holder string
	fence  int64
}

// mutex is the model. A hold that may end by itself is there and not there from
// then on: two states, until an answer tells which. So every operation can be
// placed as early as possible, and the search does not branch much.
func mutex() porcupine.Model {
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{state{}} },
		Step: func(s, in, _ any) []any {
			now, op := s.(state), in.(step)
			switch op.op {
			case opAcquire:
				if now.holder == "" && op.fence > now.fence {
					return []any{state{op.id, op.fence}}
				}
			case opHeld:
				// A stranger can have the lock only while nobody else does.
				free := now.holder == "" && op.strangers && (op.again || op.id == "" || op.id == stranger)
				if free || now.holder != "" && (op.id == "" || op.id == now.holder) {
					return []any{now}
				}
			case opFree:
				if now.holder == "" {
					return []any{now}
				}
			case opRelease:
				if now.holder == op.id {
					return []any{state{"", now.fence}}
				}
			case opLost:
				if now.holder != op.id {
					return []any{now}
				}
			case opEnd:
				if now.holder != op.id {
					return []any{now}
				}
				return []any{now, state{"", now.fence}}
			}
			return nil
		},
	}
	return model.ToModel()
}
