package record

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// Longest acquisition id and lock value that [ParseValue] accepts, in bytes.
const (
	MaxID    = 128
	MaxValue = 512
)

// valueMark opens the value of every lock of this format.
const valueMark = "ls2:"

// Value returns the value of a lock: "ls2:<id>:<secret>". The id may be shown to anyone, the secret is what makes
// the value a token; neither may contain a colon, a space or a control character.
func Value(id, secret string) string { return valueMark + id + ":" + secret }

// ParseValue returns the acquisition id in a lock's value, or false when value is not of this format. It never
// returns the secret.
func ParseValue(value []byte) (id string, ok bool) {
	rest, found := bytes.CutPrefix(value, []byte(valueMark))
	head, secret, _ := bytes.Cut(rest, []byte{':'})
	if !found || len(value) > MaxValue || len(head) > MaxID || !plain(head) || !plain(secret) {
		return "", false
	}
	return string(head), true
}

// plain says that b is not empty and all printable ASCII without space and colon, which is what an id or a secret
// consists of.
func plain(b []byte) bool {
	return len(b) > 0 && !bytes.ContainsFunc(b, func(c rune) bool { return c <= ' ' || c >= 0x7f || c == ':' })
}

// Kinds of a [Message].
const (
	MessageLost = "lost"  // a forced release has ended the hold
	MessageTurn = "turn"  // to a waiter: its place in the queue
	MessageHand = "yours" // to a waiter: it was handed the lock, for one [Turn]
)

// Message is what is published on a channel of a process.
type Message struct {
	Kind   string
	ID     string // acquisition id
	Before int    // MessageTurn: how many are before it in the queue
	Fence  int64  // MessageHand
	Nonce  string // MessageHand: of the attempt that the release found
}

// String returns the message as it is published.
func (m Message) String() string {
	switch m.Kind {
	case MessageTurn:
		return fmt.Sprintf("%s %s %d", m.Kind, m.ID, m.Before)
	case MessageHand:
		return fmt.Sprintf("%s %s %d %s", m.Kind, m.ID, m.Fence, m.Nonce)
	default:
		return m.Kind + " " + m.ID
	}
}

// ParseMessage is the inverse of [Message.String]. Words behind are ignored, and kinds that it does not know are
// not ok: later versions may say more.
func ParseMessage(text string) (m Message, ok bool) {
	words := append(strings.SplitN(text, " ", 5), "", "", "")
	m.Kind, m.ID = words[0], words[1]
	switch m.Kind {
	case MessageLost:
		ok = true
	case MessageTurn:
		var before int64
		ok = parseNumbers(words[2:], &before) == nil && before < 1<<16
		m.Before = int(before)
	case MessageHand:
		m.Nonce = words[3]
		ok = parseNumbers(words[2:], &m.Fence) == nil && m.Fence > 0 && m.Nonce != ""
	}
	if !ok || m.ID == "" {
		return Message{}, false
	}
	return m, true
}

// Turn is how long the head of the queue has to take a free lock before the next one may.
const Turn = 150 * time.Millisecond

// WaiterLife is how long a waiter is believed to live after it wrote its record, which it does each second;
// WaiterGrace how long the records of a lock's waiters outlive the last one that was due.
const (
	WaiterLife  = 3 * time.Second
	WaiterGrace = 5 * time.Second
)

// Waiter is one that waits for a lock: a field of the waiters hash ([KindWaiter]), named by its acquisition id,
// which is a member of the sorted set [KindQueue] with Since as its score.
type Waiter struct {
	Session  string // logical thread of work; "" for none
	Instance string // process; "" for none
	Since    int64  // arrival, µs of server time
	Until    int64  // ms of server time: past this it is dead unless it writes again

	// App, Host and PID are of the process, from the metadata that it would write as a holder; zero for not said.
	// Encode leaves them out.
	App  string
	Host string
	PID  int
}

// Encode returns "<session> <instance> <since> <until>", "-" for what is not known. The acquire script writes more
// behind it: what a release needs to hand the lock to the waiter, its secret among it.
func (w Waiter) Encode() string {
	return fmt.Sprintf("%s %s %d %d", dash(w.Session), dash(w.Instance), w.Since, w.Until)
}

// ParseWaiter is the inverse of [Waiter.Encode]. Of what the acquire script writes behind it, it reads the metadata
// if that is whole, and keeps nothing of the secrets. Errors wrap [ErrMalformed].
func ParseWaiter(text string) (Waiter, error) {
	var w Waiter
	words := strings.SplitN(clip(text, MaxText), " ", 8) // the eighth is the metadata without its brace
	if len(words) < 4 || words[0] == "" || words[1] == "" {
		return Waiter{}, fmt.Errorf(`%w: waiter %q: want "<session> <instance> <since> <until>"`, ErrMalformed, clip(text, 64))
	}
	if err := parseNumbers(words[2:], &w.Since, &w.Until); err != nil {
		return Waiter{}, fmt.Errorf("%w: waiter %q: since or until: %w", ErrMalformed, clip(text, 64), err)
	}
	w.Session, w.Instance = undash(words[0]), undash(words[1])
	if len(words) == 8 {
		m, _ := Decode("{" + words[7])
		w.App, w.Host, w.PID = m.App, m.Host, m.PID
	}
	return w, nil
}
