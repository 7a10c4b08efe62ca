package redlock

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/internal/transport"
	"github.com/locksteward/locksteward/lock/record"
)

// acquire asks all nodes for the lock. Less than a majority is given back at
// once, on all of them; a majority agrees on the fence.
func (q *quorum) acquire(ctx context.Context, s *transport.Script, keys []string, args []any) (any, error) {
	ttl := milliseconds(args[acquireTTL])
	if err := q.CheckTTL(ttl); err != nil {
		return nil, err
	}
	t := q.newTrack(keys, args, ttl)
	b := q.ballot(opAcquire, keys[0], t)
	b.ripe = true
	patience := q.share(ttl)
	waited := q.ask(ctx, q.nodes, round{
		script: s, keys: keys, args: args, timeout: patience, note: t.asked,
		decided: func(a answer) bool {
			b.count(a)
			return q.met.Load() && (b.won() || b.lost())
		},
	})
	q.met.Store(true)
	same := q.same.Load()
	if same == nil && b.won() {
		q.track(t)
		return strconv.FormatInt(q.raise(ctx, t, b, patience), 10), nil
	}
	q.undo(ctx, t, patience)
	switch {
	case same != nil:
		return nil, same
	case len(b.holders) > 0 && len(b.yes)+len(b.holders) >= q.need:
		return b.holder(), nil
	default:
		return nil, b.failure(waited)
	}
}

// list is the reply to an acquire that did not take the lock now.
func (a answer) list() []any {
	list, _ := a.reply.([]any)
	return list
}

// fence is what a node minted that granted an acquire, now or before.
func (a answer) fence() int64 {
	if now, ok := a.reply.(string); ok {
		return transport.Number(now)
	}
	return transport.Number(transport.At(a.list(), 1))
}

// granted and refused say how a node answered an acquire.
func (a answer) granted() bool {
	if _, now := a.reply.(string); now {
		return a.err == nil
	}
	list := a.list()
	state, ok := transport.At(list, 0).(int64)
	return a.err == nil && ok && len(list) >= 2 && state == 2
}

func (a answer) refused() bool {
	list := a.list()
	state, ok := transport.At(list, 0).(int64)
	return a.err == nil && ok && len(list) >= 4 && (state == 0 || state == 3)
}

// count counts the answer to an acquire.
func (b *ballot) count(a answer) {
	b.voted[a.node.index] = true
	switch {
	case a.granted():
		b.voteYes(a)
		if b.errs[a.node.index] != nil {
			b.no++ // it will not be older for this round
		}
	case a.refused():
		b.holders = append(b.holders, held{a.node, a.list()})
		b.voteNo(a, &b.taken, errNodeTaken)
	case a.err != nil:
		_, b.errs[a.node.index] = b.q.nodeFailure(b.op, b.key, a.err)
		b.no++
	default:
		b.errs[a.node.index] = errNodeForm
		b.no++
	}
}

// holderOf reads what a node says of who has the lock.
func holderOf(list []any) *record.Meta {
	m, _ := record.Decode(transport.Text(transport.At(list, 4))) // what is malformed is left out
	return m
}

// heldThere is what a node says that has the lock for another. It is not
// [lock.ErrHeld]: one node says nothing about the lock.
func heldThere(list []any) error {
	if h := holderOf(list); h.ID != "" {
		return fmt.Errorf("held by %q on %q (pid %d)", h.App, h.Host, h.PID)
	}
	return errNodeTaken
}

// holder is the answer of the node that tells of the hold on most nodes, and
// among those of the longest lease.
func (b *ballot) holder() any {
	on := map[string]int{}
	for _, h := range b.holders {
		on[holderOf(h.list).ID]++
	}
	delete(on, "") // one that cannot be named says least
	return slices.MaxFunc(b.holders, func(x, y held) int {
		return cmp.Or(cmp.Compare(on[holderOf(x.list).ID], on[holderOf(y.list).ID]), cmp.Compare(left(x.list), left(y.list)))
	}).list
}

// left is how long a lease lasts as a node says; without TTL, longer than any.
func left(list []any) time.Duration {
	ms := transport.Number(transport.At(list, 1))
	if ms < 0 {
		return lock.MaxTTL * 2
	}
	return time.Duration(ms) * time.Millisecond
}

// raise writes the highest fence that was minted to a majority and returns it, 0
// if that fails. The nodes of a later acquire share at least one with those, and
// it mints a higher one.
func (q *quorum) raise(ctx context.Context, t *track, b *ballot, patience time.Duration) int64 {
	var highest int64
	for _, a := range b.yes {
		highest = max(highest, a.fence())
	}
	have := 0
	var others []*node
	for _, a := range b.yes {
		if a.fence() == highest {
			have++
			continue
		}
		others = append(others, a.node)
	}
	if have < q.need && highest > 0 && len(others) > 0 {
		q.ask(ctx, others, round{
			script: raiseScript, keys: t.keys[:3],
			args: []any{t.value, t.id, highest}, timeout: patience,
			decided: func(a answer) bool {
				if a.err == nil && a.reply == int64(1) {
					have++
				}
				return have >= q.need
			},
		})
	}
	if have < q.need {
		return 0
	}
	return highest
}

// undo takes back an acquire that has no majority: on all nodes but those that
// said no, without regard to the caller's context. It returns when they have
// answered, or at ctx's end or deadline; what has not been answered by then goes
// on in the background, and Close waits for it.
func (q *quorum) undo(ctx context.Context, t *track, patience time.Duration) {
	nodes := t.perhaps()
	if len(nodes) == 0 {
		return
	}
	answered := 0
	leave, _ := ctx.Deadline()
	q.ask(undone{context.WithoutCancel(ctx), ctx.Done()}, nodes, round{
		script: q.host.Release, keys: t.keys, args: t.releaseArgs(), timeout: patience, leave: leave, note: t.freed,
		decided: func(answer) bool { answered++; return answered == len(nodes) },
	})
}

// undone is a context that is over for who waits, without a deadline for what it
// waits for.
type undone struct {
	context.Context
	done <-chan struct{}
}

func (u undone) Done() <-chan struct{} { return u.done }
