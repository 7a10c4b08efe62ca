package lock

import (
	"crypto/rand"
	"encoding/base32"
	"time"

	"github.com/locksteward/locksteward/lock/record"
)

// token is one acquisition of a lock. Its strings never change, since what was
// given up may still be on its way.
type token struct {
	key   string
	id    string
	value string   // never shown
	wake  string   // channel
	keys  []string // lock, metadata, fence, queue, waiters, and grants of who leaves marks
}

// request is one call of Acquire or TryAcquire: the same id in every attempt,
// so that a repeat of one that took effect finds itself.
type request struct {
	token
	lease   Lease
	args    []any
	session *session
	began   instant

	// base is the earliest moment at which a lease that the server says was
	// taken before may have begun.
	base instant
	// contended says that another had the lock.
	contended bool
	// open says that the last attempt may have taken effect; stray that an
	// earlier one still may.
	open, stray bool
	// since is the arrival that the queue knows.
	since int64
	mode  mode
	// recorded says that the server knows of a waiter of this id.
	recorded bool
	grantee
}

// mode is how an attempt goes about a lock that another has, as in acquire.lua.
type mode string

const (
	modeTry   mode = "0"
	modeWait  mode = "1"
	modeQueue mode = "2"
)

// How often one in the queue says that it lives, and how long it is believed.
const (
	queueBeat = time.Second
	queueLife = 3 * time.Second
)

// life is how long a waiter's record is believed.
func (m mode) life(o Options) time.Duration {
	if m == modeWait {
		return o.PollInterval*3/2 + 2*time.Second
	}
	return queueLife
}

// Places in a request's arguments and keys.
const (
	argWaiter = 4 // changes between attempts
	keyGrants = 5 // only of who leaves marks
)

// payload is the memory of a request in one piece, with room for the arguments of
// most: seven, and trace, session and locks held with their names.
type payload struct {
	request
	keys [6]string
	args [7 + 2*3]any
	num  [2]int64
}

// request prepares a call for s, which may be nil.
func (c *Client) request(key string, lease Lease, s *session, m mode) *request {
	p := &payload{}
	r := &p.request
	names := record.NamesOf(c.opts.KeyPrefix, key)
	r.key, r.lease, r.session, r.mode = key, lease, s, m
	r.id, r.value = newToken()
	r.wake = names.Wake
	p.keys = [...]string{key, names.Meta, names.Fence, names.Wait, names.Waiter, ""}
	r.keys = p.keys[:5]
	r.began = c.clock.now()
	ttl := lease.TTL.Milliseconds()
	p.num = [...]int64{ttl, ttl + record.Grace.Milliseconds()}

	args := append(p.args[:0], &r.value, &r.id, &p.num[0], &p.num[1], c.me.waiter(m))
	args = c.me.describe(append(args, &c.instance), &r.lease)
	if lease.Trace != "" {
		args = append(args, record.FieldTrace, &r.lease.Trace)
	}
	if c.grantable(lease, m) {
		p.keys[5] = record.Companion(c.opts.KeyPrefix, record.KindGrant, key)
		r.keys = p.keys[:]
		r.proof = rand.Text()
		r.nextMark(r.began)
	}
	if s != nil {
		args = append(args, record.FieldSession, &s.id)
		if holding := s.holding(c, key); len(holding) > 0 {
			args = append(args, record.FieldHolding, record.EncodeKeys(holding))
		}
	}
	if s != nil || r.mark != "" {
		args[argWaiter] = c.me.waiterText(r)
	}
	r.args = args
	return r
}

// again replaces a request that must not be repeated by a new one for the same
// lock.
func (c *Client) again(r *request) {
	next := c.request(r.key, r.lease, r.session, r.mode)
	next.began, next.contended = r.began, r.contended
	*r = *next
}

// attempted returns the arguments for the next attempt.
func (c *Client) attempted(r *request) []any {
	r.recorded = r.recorded || r.mode != modeTry
	if r.since == 0 {
		return r.args
	}
	if r.mark != "" {
		r.nextMark(c.clock.now())
	}
	args := append(make([]any, 0, len(r.args)), r.args...)
	args[argWaiter] = c.me.waiterText(r)
	return args
}

// secretBytes is the randomness of an id, and of a secret: 160 bits.
const secretBytes = 20

// newToken returns a new acquisition id and the value of the lock that it names,
// whose second half is the secret.
func newToken() (id, value string) {
	const text = secretBytes * 8 / 5
	var random [2 * secretBytes]byte
	// It never fails: the program ends first.
	_, _ = rand.Read(random[:])
	var b [len(valueMark) + 2*text + 1]byte
	n := copy(b[:], valueMark)
	base32.StdEncoding.Encode(b[n:], random[:secretBytes])
	b[n+text] = ':'
	base32.StdEncoding.Encode(b[n+text+1:], random[secretBytes:])
	value = string(b[:])
	return value[n : n+text], value
}

// valueMark opens the value of a lock (record.Value).
const valueMark = "ls1:"
