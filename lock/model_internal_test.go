package lock

import (
	"bytes"
	"fmt"
	"testing"
)

// The model is the protocol of acquire.lua, release.lua and renew.lua
// with clients that may do nothing for as long as they like (a pause), die, and
// whose messages may be lost or late. Time goes by in ticks. The tests visit every
// state that three clients can get into.
const (
	modelClients = 3
	modelTurn    = 2 // ticks that a hand-off lasts
	modelTTL     = 3 // ticks that a lease lasts
)

// phase is what a client does.
type phase uint8

const (
	idle     phase = iota
	asking         // its attempt is on its way
	answered       // the attempt took the lock; the reply is on its way
	refused        // the attempt did not; likewise
	waiting
	holding
	dead
	absent // for models with fewer clients
)

// modelClient is one client. Nonces and acquisitions are new each time, so that it
// is enough to know of the server's whether they are those of the last attempt.
type modelClient struct {
	phase phase
	age   uint8 // ticks since before the last attempt was sent
	until uint8 // ticks for which it believes that it holds the lock

	renewal    uint8 // 0 none, 1 sent, 2 executed
	renewalAge uint8 // ticks since it was sent

	message uint8 // "yours" on its way: 0 none, 1 with the last nonce, 2 with an older one
}

// model is a state.
type model struct {
	owner   int8  // client whose value the lock has; -1: it is free
	old     bool  // of an acquisition before the client's last one
	left    uint8 // ticks until the server expires the lock
	queue   [modelClients]int8
	fresh   [modelClients]bool // the record in the queue has the last nonce
	clients [modelClients]modelClient

	belief uint8 // ticks for which a client believes in a hand-off; the same in all states
}

func newModel() model {
	m := model{owner: -1, belief: modelTurn}
	for i := range m.queue {
		m.queue[i] = -1
	}
	return m
}

func (m *model) queued(i int) bool {
	for _, q := range m.queue {
		if int(q) == i {
			return true
		}
	}
	return false
}

func (m *model) remove(i int) {
	n := 0
	var rest [modelClients]int8
	for k := range rest {
		rest[k] = -1
	}
	for _, q := range m.queue {
		if q >= 0 && int(q) != i {
			rest[n] = q
			n++
		}
	}
	m.queue = rest
	m.fresh[i] = false
}

func (m *model) enqueue(i int) {
	if !m.queued(i) {
		for k, q := range m.queue {
			if q < 0 {
				m.queue[k] = int8(i)
				break
			}
		}
	}
	m.fresh[i] = true
}

func (m *model) owns(i int) bool { return int(m.owner) == i && !m.old }

// send is an attempt that leaves client i: what the server and messages have of its
// nonce is old now.
func (m *model) send(i int) {
	c := &m.clients[i]
	c.phase, c.age = asking, 0
	m.fresh[i] = false
	if c.message == 1 {
		c.message = 2
	}
}

// forget ends an acquisition of client i.
func (m *model) forget(i int) {
	c := &m.clients[i]
	message := c.message
	*c = modelClient{phase: idle}
	if message != 0 {
		c.message = 2
	}
	if int(m.owner) == i {
		m.old = true
	}
}

// free is release.lua behind its comparison. Each head may be found unreachable; then
// it is passed over.
func (m model) free(emit func(model)) {
	m.owner, m.old, m.left = -1, false, 0
	head := m.queue[0]
	if head < 0 {
		emit(m)
		return
	}
	passed := m
	passed.remove(int(head))
	passed.free(emit)
	if m.clients[head].phase == dead {
		return
	}
	m.owner, m.left = head, modelTurn
	m.clients[head].message = 2
	if m.fresh[head] {
		m.clients[head].message = 1
	}
	m.remove(int(head))
	emit(m)
}

// steps emits every state that may follow m, with what has happened.
func (m model) steps(emit func(client int8, what string, next model)) {
	tick := m
	if tick.left > 0 {
		if tick.left--; tick.left == 0 {
			tick.owner, tick.old = -1, false
		}
	}
	for i := range tick.clients {
		c := &tick.clients[i]
		c.age = min(c.age+1, modelTTL)
		c.renewalAge = min(c.renewalAge+1, modelTTL)
		if c.phase != asking && c.phase != answered && c.phase != refused && c.phase != waiting {
			c.age = 0
		}
		if c.renewal == 0 {
			c.renewalAge = 0
		}
		if c.phase == holding {
			if c.until--; c.until == 0 {
				tick.forget(i) // its context ends
			}
		}
	}
	emit(-1, "a tick", tick)
	for i := range m.clients {
		if m.clients[i].phase != absent {
			m.stepsOf(i, func(what string, next model) { emit(int8(i), what, next) })
		}
	}
}

func (m model) stepsOf(i int, emit func(string, model)) {
	c := m.clients[i]
	if c.message != 0 {
		lost := m
		lost.clients[i].message = 0
		emit("loses a message", lost)
	}
	if c.phase != dead {
		died := m
		died.forget(i)
		died.clients[i] = modelClient{phase: dead}
		emit("dies", died)
	}
	switch c.phase {
	case idle:
		next := m
		next.send(i)
		emit("asks", next)
	case asking:
		m.attempt(i, emit)
	case answered:
		next := m
		if c.age >= modelTTL {
			next.forget(i)
			emit("gets the lock too late", next)
			break
		}
		next.clients[i] = modelClient{phase: holding, until: modelTTL - c.age, message: c.message}
		emit("holds the lock", next)
	case refused:
		next := m
		next.clients[i].phase = waiting
		emit("waits", next)
	case waiting:
		again := m
		again.send(i)
		emit("asks again", again)
		if c.message != 0 {
			next := m
			next.clients[i].message = 0
			if c.message == 1 && c.age < m.belief {
				next.clients[i] = modelClient{phase: holding, until: m.belief - c.age}
				emit("is handed the lock", next)
			} else {
				emit("reads a message of no use", next)
			}
		}
		left := m
		owned := left.owns(i)
		left.remove(i)
		left.forget(i)
		if owned {
			left.free(func(next model) { emit("gives up what it was handed", next) })
		} else {
			emit("gives up", left)
		}
	case holding:
		m.hold(i, emit)
	case dead:
		next := m
		next.remove(i)
		emit("is forgotten", next) // its record has run out
	}
}

// attempt is acquire.lua.
func (m model) attempt(i int, emit func(string, model)) {
	taken := m
	taken.owner, taken.old, taken.left = int8(i), false, modelTTL
	taken.clients[i].phase = answered
	switch {
	case m.owns(i):
		taken.left = max(m.left, modelTTL)
		emit("finds the lock its own", taken)
	case m.owner < 0:
		// It may pass those over whose turns have lapsed; when that is does not
		// matter for who holds the lock.
		for _, q := range m.queue {
			if q < 0 || int(q) == i {
				break
			}
			taken.remove(int(q))
		}
		taken.remove(i)
		emit("takes the lock", taken)
		if m.queue[0] >= 0 && int(m.queue[0]) != i {
			next := m
			next.enqueue(i)
			next.clients[i].phase = refused
			emit("yields to the queue", next)
		}
	default:
		next := m
		next.enqueue(i)
		next.clients[i].phase = refused
		emit("finds another", next)
	}
}

// hold is what a holder does: renew.lua, which also confirms, and release.lua.
func (m model) hold(i int, emit func(string, model)) {
	c := m.clients[i]
	switch c.renewal {
	case 0:
		next := m
		next.clients[i].renewal, next.clients[i].renewalAge = 1, 0
		emit("sends a renewal", next)
	case 1:
		next := m
		if m.owns(i) {
			next.left = max(m.left, modelTTL)
			next.clients[i].renewal = 2
			emit("renews", next)
		} else {
			next.forget(i)
			emit("learns of its loss", next)
		}
	case 2:
		next := m
		next.clients[i].renewal = 0
		if c.renewalAge < modelTTL {
			next.clients[i].until = max(c.until, modelTTL-c.renewalAge)
		}
		next.clients[i].renewalAge = 0
		emit("reads the reply to a renewal", next)
	}
	released := m
	owned := released.owns(i)
	released.forget(i)
	if owned {
		released.free(func(next model) { emit("releases", next) })
	} else {
		emit("releases what it has lost", released)
	}
}

// key is a state as bytes, with the clients in the order of p.
func (m *model) key(p [modelClients]int8) (k [25]byte) {
	place := [modelClients]int8{}
	for to, from := range p {
		place[from] = int8(to)
	}
	at := func(i int8) byte {
		if i < 0 {
			return 255
		}
		return byte(place[i])
	}
	flag := func(b bool) byte {
		if b {
			return 1
		}
		return 0
	}
	k[0], k[1], k[2] = at(m.owner), flag(m.old), m.left
	for n, q := range m.queue {
		k[3+n] = at(q)
	}
	for to, from := range p {
		c := &m.clients[from]
		copy(k[6+6*to:], []byte{byte(c.phase)<<1 | flag(m.fresh[from]), c.age, c.until, c.renewal, c.renewalAge, c.message})
	}
	return k
}

// orders are all orders of the clients.
var orders = [][modelClients]int8{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}

// canonical is the key of the states that differ from m only in who is who.
func (m *model) canonical() [25]byte {
	least := m.key(orders[0])
	for _, p := range orders[1:] {
		if k := m.key(p); bytes.Compare(k[:], least[:]) < 0 {
			least = k
		}
	}
	return least
}

// explore visits every state that the clients of start can get into. It returns the
// states and, if wanted, which follow which; and if two clients ever believe that they
// hold the lock, how that came about.
func explore(start model, key func(*model) [25]byte, edges bool) (states []model, before [][]int32, wrong []string) {
	type link struct {
		from   int32
		client int8
		what   string
	}
	index := map[[25]byte]int32{key(&start): 0}
	states, before = []model{start}, [][]int32{nil}
	back := []link{{-1, -1, "start"}}
	for at := int32(0); at < int32(len(states)); at++ {
		states[at].steps(func(client int8, what string, next model) {
			k := key(&next)
			n, known := index[k]
			if !known {
				n = int32(len(states))
				index[k] = n
				states, before = append(states, next), append(before, nil)
				back = append(back, link{at, client, what})
			}
			if edges {
				before[n] = append(before[n], at)
			}
		})
		holders := 0
		for _, c := range states[at].clients {
			if c.phase == holding {
				holders++
			}
		}
		if holders > 1 {
			for n := at; n >= 0; n = back[n].from {
				wrong = append(wrong, fmt.Sprintf("client %d %s: %+v", back[n].client, back[n].what, states[n]))
			}
			return states, before, wrong
		}
	}
	return states, before, nil
}

// No two clients ever believe that they hold the lock, whoever pauses, dies or loses
// messages.
func TestModelExcludes(t *testing.T) {
	t.Parallel()
	states, _, wrong := explore(newModel(), (*model).canonical, false)
	for _, line := range wrong {
		t.Error(line)
	}
	t.Logf("%d states", len(states))
}

// The model finds out that two hold the lock if a hand-off is believed for the TTL.
func TestModelFindsTwoHolders(t *testing.T) {
	t.Parallel()
	start := newModel()
	start.belief = modelTTL
	if _, _, wrong := explore(start, (*model).canonical, false); wrong == nil {
		t.Error("found nothing")
	}
}

// From every state in which a client waits it can still get the lock.
func TestModelProceeds(t *testing.T) {
	t.Parallel()
	start := newModel()
	start.clients[2].phase = absent
	states, before, _ := explore(start, func(m *model) [25]byte { return m.key(orders[0]) }, true)
	served := make([]bool, len(states))
	var open []int32
	for n, m := range states {
		if m.clients[0].phase == holding {
			served[n] = true
			open = append(open, int32(n))
		}
	}
	for len(open) > 0 {
		n := open[len(open)-1]
		open = open[:len(open)-1]
		for _, from := range before[n] {
			if !served[from] {
				served[from] = true
				open = append(open, from)
			}
		}
	}
	for n, m := range states {
		if m.clients[0].phase == waiting && !served[n] {
			t.Fatalf("a client waits for ever: %+v", m)
		}
	}
}
