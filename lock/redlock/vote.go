package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/internal/transport"
)

// ballot counts the answers of one round.
type ballot struct {
	q    *quorum
	op   string
	key  string
	sent time.Time
	t    *track // may be nil
	ripe bool   // only nodes that have been up long enough may say yes

	yes     []answer // votes that count
	no      int      // nodes that certainly say no
	gone    int      // no: the key is not there
	taken   int      // no: the key is another's
	holders []held   // no: and who has it
	errs    []error  // by node; nil for a yes and for who has not answered
	voted   []bool
}

// held is what a node says of a lock that another has.
type held struct {
	node *node
	list []any
}

func (q *quorum) ballot(op, key string, t *track) *ballot {
	n := len(q.nodes)
	return &ballot{q: q, op: op, key: key, t: t, sent: time.Now(), errs: make([]error, n), voted: make([]bool, n)}
}

// won says that enough nodes say yes, lost that they no longer can.
func (b *ballot) won() bool  { return len(b.yes) >= b.q.need }
func (b *ballot) lost() bool { return len(b.q.nodes)-b.no < b.q.need }

// voteYes counts a yes, unless the node must not vote yet.
func (b *ballot) voteYes(a answer) {
	if err := b.q.tooYoung(a.node, b.sent); b.ripe && err != nil {
		b.errs[a.node.index] = err
		return
	}
	b.yes = append(b.yes, a)
}

// voteNo counts a no.
func (b *ballot) voteNo(a answer, count *int, why error) {
	b.no++
	*count++
	b.errs[a.node.index] = why
}

// failed notes a node that did not vote. If the acquire certainly had no effect
// there, it will never say yes.
func (b *ballot) failed(a answer) {
	_, b.errs[a.node.index] = b.q.nodeFailure(b.op, b.key, a.err)
	if b.t != nil && b.t.absent(a.node) {
		b.no++
		b.gone++
	}
}

var (
	errNodeGone  = errors.New("the lock is not there")
	errNodeTaken = errors.New("the key is another's")
	errNodeForm  = fmt.Errorf("%w: reply of an unknown form", lock.ErrUnknown)
)

// tally counts what a node says to a script that compares: 1 yes, 0 the lock is
// not there, -1 it is another's.
func (b *ballot) tally(a answer) {
	b.voted[a.node.index] = true
	switch {
	case a.err != nil:
		b.failed(a)
	case a.reply == int64(1):
		b.voteYes(a)
	case a.reply == int64(0):
		b.voteNo(a, &b.gone, errNodeGone)
	case a.reply == int64(-1):
		b.voteNo(a, &b.taken, errNodeTaken)
	default:
		b.errs[a.node.index] = errNodeForm
	}
}

// verdict is the reply of a script that compares, as one server would give it.
func (b *ballot) verdict(waited time.Duration) (any, error) {
	switch {
	case b.won():
		return int64(1), nil
	case b.lost() && b.taken >= b.gone:
		return int64(-1), nil
	case b.lost():
		return int64(0), nil
	default:
		return nil, b.failure(waited)
	}
}

// failure says what each node said that did not give its vote and was waited for.
func (b *ballot) failure(waited time.Duration) *QuorumError {
	e := &QuorumError{Op: b.op, Key: b.key, Need: b.q.need, Got: len(b.yes)}
	for _, h := range b.holders {
		b.errs[h.node.index] = heldThere(h.list)
	}
	for i, n := range b.q.nodes {
		err := b.errs[i]
		if err == nil && !b.voted[i] {
			err = fmt.Errorf("%w: no answer within %s", lock.ErrUnknown, waited)
		}
		if err != nil {
			e.Nodes = append(e.Nodes, NodeError{Node: i, Addr: n.addr, Err: err})
		}
	}
	return e
}

// renew asks for votes on a lease that goes on. A node that has lost the lock is
// left alone: nothing re-creates it.
func (q *quorum) renew(ctx context.Context, s *transport.Script, keys []string, args []any) (any, error) {
	ttl := milliseconds(args[renewTTL])
	if err := q.CheckTTL(ttl); err != nil {
		return nil, err
	}
	t := q.tracked(transport.Text(args[argValue]))
	if t != nil {
		t.lasts(time.Now().Add(ttl))
	}
	b := q.ballot(opRenew, keys[0], t)
	b.ripe = true
	patience := q.patience(ttl)
	waited := q.ask(ctx, q.nodes, round{
		script: s, keys: keys, args: args, timeout: patience,
		decided: func(a answer) bool { b.tally(a); return b.won() || b.lost() },
	})
	return b.verdict(waited)
}

// release frees the lock on all nodes: also on those that never said that they
// took it. Where the answer is not certain, the node's cleaner goes on.
func (q *quorum) release(ctx context.Context, keys []string, args []any) (any, error) {
	value := transport.Text(args[argValue])
	t := q.tracked(value)
	b := q.ballot(opRelease, keys[0], t)
	patience := q.patience(0)
	r := round{
		script: q.host.Release, keys: keys, args: args, timeout: patience,
		decided: func(a answer) bool { b.tally(a); return b.won() || b.lost() },
	}
	if t != nil {
		r.note = t.freed
	}
	waited := q.ask(ctx, q.nodes, r)
	v, err := b.verdict(waited)
	if err == nil {
		q.untrack(value)
	}
	return v, err
}

// beat writes the heartbeat on all nodes, since those who look see one at a time.
func (q *quorum) beat(ctx context.Context, s *transport.Script, keys []string, args []any) (any, error) {
	b := q.ballot(opBeat, keys[0], nil)
	patience := q.patience(0)
	waited := q.ask(ctx, q.nodes, round{
		script: s, keys: keys, args: args, timeout: patience,
		decided: func(a answer) bool {
			b.voted[a.node.index] = true
			switch {
			case a.err != nil:
				b.failed(a)
			case transport.Text(a.reply) == "":
				b.errs[a.node.index] = errNodeForm
			default:
				b.yes = append(b.yes, a)
			}
			return b.won()
		},
	})
	if !b.won() {
		return nil, b.failure(waited)
	}
	return b.yes[0].reply, nil
}

// milliseconds reads an argument.
func milliseconds(arg any) time.Duration {
	ms, _ := arg.(int64)
	return time.Duration(ms) * time.Millisecond
}
