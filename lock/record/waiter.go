package record

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// WaiterLife is how long a waiter is believed to live after it wrote its record;
// it writes it each second.
const WaiterLife = 3 * time.Second

// WaiterGrace is how long the records of a lock's waiters outlive the last one
// that was due.
const WaiterGrace = 5 * time.Second

// Turn is how long the head of the queue has to take a free lock before the next
// one may.
const Turn = 150 * time.Millisecond

// Waiter is one that waits for a lock: a field of the waiters hash
// ([KindWaiter]), named by its acquisition id, which is a member of the sorted
// set [KindQueue] with Since as its score.
type Waiter struct {
	Session  string // logical thread of work; "" for none
	Instance string // process; "" for none
	Since    int64  // arrival, µs of server time
	Until    int64  // ms of server time: past this it is dead unless it writes again
}

// Encode returns "<session> <instance> <since> <until>", "-" for what is not
// known. The acquire script writes more behind it: what a release needs to hand
// the lock to the waiter, its secret among it.
func (w Waiter) Encode() string {
	b := make([]byte, 0, 96)
	b = append(b, w.Who()...)
	b = append(b, ' ')
	b = strconv.AppendInt(b, w.Since, 10)
	b = append(b, ' ')
	return string(strconv.AppendInt(b, w.Until, 10))
}

// Who returns the first two words of [Waiter.Encode], which never change.
func (w Waiter) Who() string { return dash(w.Session) + " " + dash(w.Instance) }

// ParseWaiter is the inverse of [Waiter.Encode]. Words behind the fourth are
// ignored. Errors wrap [ErrMalformed].
func ParseWaiter(text string) (Waiter, error) {
	parts := strings.Split(clip(text, MaxText), " ")
	if len(parts) < 4 || parts[0] == "" || parts[1] == "" {
		return Waiter{}, fmt.Errorf("%w: waiter %q: %w", ErrMalformed, clip(text, 64),
			errors.New(`want "<session> <instance> <since> <until>"`))
	}
	since, err := parseNumber(parts[2])
	if err != nil {
		return Waiter{}, fmt.Errorf("%w: waiter %q: since: %w", ErrMalformed, clip(text, 64), err)
	}
	until, err := parseNumber(parts[3])
	if err != nil {
		return Waiter{}, fmt.Errorf("%w: waiter %q: until: %w", ErrMalformed, clip(text, 64), err)
	}
	return Waiter{Session: undash(parts[0]), Instance: undash(parts[1]), Since: since, Until: until}, nil
}
