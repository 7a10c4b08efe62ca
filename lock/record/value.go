package record

import (
	"bytes"
	"strconv"
	"strings"
)

// valueMark opens the value of every lock of this format.
const valueMark = "ls2:"

// MaxID is the longest acquisition id that [ParseValue] accepts, in bytes.
const MaxID = 128

// MaxValue is the longest lock value that [ParseValue] accepts, in bytes.
const MaxValue = 512

// Value returns the value of a lock: "ls2:<id>:<secret>". The id may be shown
// to anyone, the secret is what makes the value a token; neither may contain a
// colon, a space or a control character.
func Value(id, secret string) string { return valueMark + id + ":" + secret }

// ParseValue returns the acquisition id in a lock's value, or false when value
// is not of this format. It never returns the secret.
func ParseValue(value []byte) (id string, ok bool) {
	if len(value) > MaxValue {
		return "", false
	}
	rest, found := bytes.CutPrefix(value, []byte(valueMark))
	if !found {
		return "", false
	}
	head, secret, found := bytes.Cut(rest, []byte{':'})
	if !found || len(head) > MaxID || !plain(head) || !plain(secret) {
		return "", false
	}
	return string(head), true
}

// plain says that b is not empty and all printable ASCII without space and
// colon, which is what an id or a secret consists of.
func plain(b []byte) bool {
	for _, c := range b {
		if c <= ' ' || c >= 0x7f || c == ':' {
			return false
		}
	}
	return len(b) > 0
}

const lostMark = "lost "

// LostMessage is what a forced release publishes on the holder's instance
// channel, so that the hold with that acquisition id ends at once.
func LostMessage(id string) string { return lostMark + id }

// ParseLostMessage is the inverse of [LostMessage]. Words behind the id are
// ignored: later versions may say more.
func ParseLostMessage(message string) (id string, ok bool) {
	rest, found := strings.CutPrefix(message, lostMark)
	if !found {
		return "", false
	}
	id, _, _ = strings.Cut(rest, " ")
	return id, id != ""
}

const turnMark = "turn "

// TurnMessage is what a release publishes on the channel of the waiter's process:
// how many others are before it in the queue.
func TurnMessage(id string, before int) string { return turnMark + id + " " + strconv.Itoa(before) }

// ParseTurnMessage is the inverse of [TurnMessage]. Words behind are ignored:
// later versions may say more.
func ParseTurnMessage(message string) (id string, before int, ok bool) {
	rest, found := strings.CutPrefix(message, turnMark)
	if !found {
		return "", 0, false
	}
	id, rest, _ = strings.Cut(rest, " ")
	number, _, _ := strings.Cut(rest, " ")
	before, err := strconv.Atoi(number)
	return id, before, err == nil && id != "" && before >= 0 && before < 1<<16
}

const grantMark = "yours "

// Grant is the message of a release to the waiter that it handed the lock, for
// one [Turn].
type Grant struct {
	ID    string `json:"id"` // acquisition id
	Fence int64  `json:"fence"`
	Nonce string `json:"nonce"` // of the attempt that enqueued the waiter or refreshed its record
}

// GrantMessage is what a release publishes on the channel of the process in
// which the waiter stands that it gave the lock.
func GrantMessage(g Grant) string {
	return grantMark + g.ID + " " + strconv.FormatInt(g.Fence, 10) + " " + g.Nonce
}

// ParseGrantMessage is the inverse of [GrantMessage]. Words behind are ignored:
// later versions may say more.
func ParseGrantMessage(message string) (g Grant, ok bool) {
	rest, found := strings.CutPrefix(message, grantMark)
	if !found {
		return Grant{}, false
	}
	g.ID, rest, _ = strings.Cut(rest, " ")
	number, rest, _ := strings.Cut(rest, " ")
	g.Nonce, _, _ = strings.Cut(rest, " ")
	fence, err := parseNumber(number)
	g.Fence = fence
	if err != nil || fence <= 0 || g.ID == "" || g.Nonce == "" {
		return Grant{}, false
	}
	return g, true
}
