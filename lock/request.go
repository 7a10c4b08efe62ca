package lock

import (
	"crypto/rand"
	"encoding/base32"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/locksteward/locksteward/lock/record"
)

// token is one acquisition of a lock. Its strings never change, since what was given up may still be on its way.
type token struct {
	key   string
	id    string
	value string   // never shown
	tail  string   // metadata, from its member "id" on
	keys  []string // lock, metadata, fence, queue, waiters
}

// request is one call of Acquire or TryAcquire: the same id in every attempt, so that a repeat of one that took
// effect finds itself.
type request struct {
	token
	lease   Lease
	args    []any
	session *session
	began   instant
	// channel is where the process is notified of its turn; empty for the one that it listens on anyway.
	channel string

	base        instant // the earliest moment at which a lease that the server says was taken before may have begun
	contended   bool    // another had the lock
	open, stray bool    // the last attempt may have taken effect; an earlier one still may
	since       int64   // arrival that the queue knows
	waits       bool    // it waits in the queue if it cannot have the lock
	enqueued    bool    // the server may know of the waiter

	// proof opens each nonce: nobody can make one up who cannot read the lock's keys. Empty if no release may hand
	// the lock over.
	proof  string
	nonce  string // of the last attempt
	nonces int
	marked instant       // before the first time that the last attempt was sent
	trip   time.Duration // how long the last answer took
}

// argWaiter is the place of the argument of acquire that changes between attempts.
const argWaiter = 5

// payload is the memory of a request in one piece.
type payload struct {
	request
	keys   [5]string
	args   [6]any
	num    [2]int64
	waiter string // the sixth argument of the first attempt
}

// noWaiter is the sixth argument of acquire.lua of a request that does not wait.
var noWaiter = any("")

// request prepares a call for s, which may be nil.
func (c *Client) request(key string, lease Lease, s *session, waits bool) *request {
	p := &payload{}
	r := &p.request
	names := record.NamesOf(c.opts.KeyPrefix, key)
	r.key, r.lease, r.session, r.waits = key, lease, s, waits
	r.began = c.clock.now()
	p.keys = [...]string{key, names.Hold, names.Fence, names.Queue, names.Waiter}
	r.keys = p.keys[:]

	// All texts of the request are parts of one.
	var memory [640]byte
	b := appendToken(memory[:0])
	value := len(b)
	b = c.appendTail(b, r, b[len(valueMark):][:idLength])
	tail := len(b)
	var proof []byte
	if waits && c.push != nil {
		if c.server.Cluster() {
			r.channel = names.Wake + ":" + c.instance
		}
		b = appendRandom(b)
		proof = b[tail:]
	}
	waiter := len(b)
	if waits && c.backend == nil {
		b = c.appendWaiter(b, r, proof, r.began)
	}
	all := string(b)
	r.value, r.tail, r.proof, p.waiter = all[:value], all[value:tail], all[tail:waiter], all[waiter:]
	r.id = r.value[len(valueMark):][:idLength]
	r.nonce = nonceOf(p.waiter)
	ttl := lease.TTL.Milliseconds()
	p.num = [...]int64{ttl, ttl + record.Grace.Milliseconds()}
	p.args = [...]any{&r.value, &r.id, &p.num[0], &p.num[1], &r.tail, noWaiter}
	r.args = p.args[:]
	if p.waiter != "" {
		r.args[argWaiter] = &p.waiter
	}
	return r
}

// again replaces a request that must not be repeated by a new one for the same lock.
func (c *Client) again(r *request) {
	next := c.request(r.key, r.lease, r.session, r.waits)
	next.began, next.contended = r.began, r.contended
	*r = *next
}

// attempted returns the arguments for the next attempt.
func (c *Client) attempted(r *request) []any {
	r.enqueued = r.enqueued || r.waits && c.backend == nil
	if r.since == 0 {
		return r.args
	}
	waiter := string(c.appendWaiter(nil, r, []byte(r.proof), c.clock.now()))
	r.nonce = nonceOf(waiter)
	args := append(make([]any, 0, len(r.args)), r.args...)
	args[argWaiter] = waiter
	return args
}

// appendWaiter appends the sixth argument of acquire.lua for an attempt that is sent after now.
func (c *Client) appendWaiter(b []byte, r *request, proof []byte, now instant) []byte {
	b = append(strconv.AppendInt(b, r.since, 10), ' ')
	if len(proof) == 0 {
		b = append(b, '-')
	} else {
		r.nonces++
		r.marked = now
		b = strconv.AppendInt(append(b, proof...), int64(r.nonces), 10)
	}
	session := "-"
	if r.session != nil {
		session = r.session.id
	}
	b = append(append(b, ' '), session...)
	return append(append(b, ' '), c.instance...)
}

// nonceOf returns the nonce in what appendWaiter has appended; empty for none.
func nonceOf(waiter string) string {
	_, rest, _ := strings.Cut(waiter, " ")
	nonce, _, _ := strings.Cut(rest, " ")
	return strings.TrimPrefix(nonce, "-")
}

// tails are the metadata of leases from behind the id on, by lease without its trace: equal leases have equal ones.
type tails struct {
	mu      sync.RWMutex
	byLease map[Lease]string
}

// maxTails is how many are kept.
const maxTails = 256

// appendTail appends the metadata of r with its acquisition id as scripts take it, from its member "id" on.
func (c *Client) appendTail(b []byte, r *request, id []byte) []byte {
	meta := func() *record.Meta {
		m := &record.Meta{
			V: record.Version, Instance: c.instance, App: c.opts.App, Host: c.opts.Host, PID: os.Getpid(),
			Class: r.lease.Class, Purpose: r.lease.Purpose, TTL: r.lease.TTL.Milliseconds(), RenewEvery: r.lease.renewEvery().Milliseconds(),
			Expect: r.lease.Expect.Milliseconds(), MaxHold: r.lease.MaxHold.Milliseconds(),
		}
		if c.opts.EndWithHeartbeat {
			m.EndsWithHeartbeat = 1
		}
		return m
	}
	if r.session != nil || r.lease.Trace != "" {
		m := meta()
		m.ID, m.Trace = string(id), r.lease.Trace
		if r.session != nil {
			m.Session, m.Holding = r.session.id, r.session.holding(c, r.key)
		}
		return append(b, m.Tail()...)
	}
	c.tails.mu.RLock()
	tail, known := c.tails.byLease[r.lease]
	c.tails.mu.RUnlock()
	if !known {
		tail = meta().Tail()
		c.tails.mu.Lock()
		if len(c.tails.byLease) >= maxTails {
			clear(c.tails.byLease) // leases that differ each time are not worth keeping
		}
		c.tails.byLease[r.lease] = tail
		c.tails.mu.Unlock()
	}
	b = append(append(append(b, `"id":"`...), id...), `",`...)
	return append(b, tail...)
}

// secretBytes is the randomness of an id, of a secret, and of what opens a nonce: 160 bits; idLength is how long
// each is as text.
const (
	secretBytes = 20
	idLength    = secretBytes * 8 / 5
)

// appendRandom appends a text that nobody can guess.
func appendRandom(b []byte) []byte {
	var random [secretBytes]byte
	_, _ = rand.Read(random[:]) // it never fails: the program ends first
	return base32.StdEncoding.AppendEncode(b, random[:])
}

// valueMark opens the value of a lock (record.Value).
const valueMark = "ls2:"

// appendToken appends the value of a lock: a new acquisition id, and the secret.
func appendToken(b []byte) []byte {
	return appendRandom(append(appendRandom(append(b, valueMark...)), ':'))
}
