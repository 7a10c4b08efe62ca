package lock

import (
	"crypto/rand"
	"encoding/base32"
	"strconv"

	"github.com/locksteward/locksteward/lock/record"
)

// request is one call of Acquire or TryAcquire: the same id in every attempt,
// so that a repeat of one that took effect finds itself. What it points args at
// never changes, since a request that was given up may still be on its way.
type request struct {
	key     string
	lease   Lease
	id      string
	value   string
	names   *record.Names
	keys    []string
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
	// recorded says that the server knows of a waiter of this id.
	recorded bool
}

// Modes of an attempt, as in acquire.lua.
const (
	modeTry   = "0"
	modeWait  = "1"
	modeQueue = "2"
)

// Places in a request's arguments that differ between attempts.
const (
	argMode  = 4
	argLife  = 5
	argSince = 6
	argMeta  = 9
)

// payload is the memory of a request in one piece.
type payload struct {
	request
	names record.Names
	keys  [5]string
	args  [argMeta + 2*15]any
	num   [4]int64
	who   string
}

// request prepares a call. holding are the other locks of its session.
func (c *Client) request(key string, lease Lease, s *session) *request {
	p := &payload{names: record.NamesOf(c.opts.KeyPrefix, key)}
	r := &p.request
	r.key, r.lease, r.session = key, lease, s
	r.id, r.value = newToken()
	r.names = &p.names
	p.keys = [...]string{key, p.names.Meta, p.names.Fence, p.names.Wait, p.names.Waiter}
	r.keys = p.keys[:]
	r.began = c.clock.now()

	p.num = [...]int64{
		lease.TTL.Milliseconds(), lease.renewEvery(c.opts).Milliseconds(),
		lease.Expect.Milliseconds(), lease.MaxHold.Milliseconds(),
	}
	args := append(p.args[:0], &r.value, &r.id, &p.num[0], graceText, modeTry, lifeText, "0", &c.me.who, turnText)
	text := func(name string, value *string) {
		if *value != "" {
			args = append(args, name, value)
		}
	}
	number := func(name string, value *int64) {
		if *value != 0 {
			args = append(args, name, value)
		}
	}
	args = append(args, record.FieldV, versionText, record.FieldID, &r.id)
	args = append(args, c.me.fields...)
	text(record.FieldClass, &r.lease.Class)
	text(record.FieldPurpose, &r.lease.Purpose)
	number(record.FieldTTL, &p.num[0])
	number(record.FieldRenewEvery, &p.num[1])
	number(record.FieldExpect, &p.num[2])
	number(record.FieldMaxHold, &p.num[3])
	text(record.FieldTrace, &r.lease.Trace)
	if s != nil {
		args = append(args, record.FieldSession, &s.id)
		if holding := s.holding(c, key); len(holding) > 0 {
			args = append(args, record.FieldHolding, record.EncodeKeys(holding))
		}
		p.who = record.Waiter{Session: s.id, Instance: c.instance}.Who()
		args[argSince+1] = &p.who
	}
	r.args = args
	return r
}

// again replaces a request that must not be repeated by a new one for the same
// lock.
func (c *Client) again(r *request) {
	next := c.request(r.key, r.lease, r.session)
	next.began, next.contended = r.began, r.contended
	*r = *next
}

// attempted returns the arguments for an attempt in the given mode.
func (r *request) attempted(mode string, life int64) []any {
	if mode == modeTry {
		return r.args
	}
	r.recorded = true
	args := append(make([]any, 0, len(r.args)), r.args...)
	args[argMode], args[argLife], args[argSince] = mode, life, r.since
	return args
}

// me is what a client says about itself with each lock, ready to be sent.
type me struct {
	fields []any
	who    string
}

func newMe(c *Client) me {
	m := me{who: record.Waiter{Instance: c.instance}.Who()}
	text := func(name, value string) {
		if value != "" {
			m.fields = append(m.fields, name, value)
		}
	}
	text(record.FieldInstance, c.instance)
	text(record.FieldApp, c.opts.App)
	text(record.FieldHost, c.opts.Host)
	text(record.FieldPID, strconv.Itoa(c.pid))
	return m
}

var (
	versionText = strconv.Itoa(record.Version)
	graceText   = strconv.FormatInt(record.Grace.Milliseconds(), 10)
	turnText    = strconv.FormatInt(record.Turn.Milliseconds(), 10)
	lifeText    = strconv.FormatInt(queueLife.Milliseconds(), 10)
)

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
