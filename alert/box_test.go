package alert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
)

// box is an outbox in memory that keeps the time of the test. What the store does
// besides, over restarts and processes, its own tests and those of the agent show.
type box struct {
	mu   sync.Mutex
	rows []*row
	groupBox
	away error           // what every call returns, if set
	slow <-chan struct{} // what Delivered waits for, if set
}

type row struct {
	locksteward.Notification
	state   string // waiting, delivered, dead
	next    time.Time
	claimed time.Time // until
	claim   int
	why     error
}

// put writes messages as the transaction of their change does.
func (b *box) put(messages ...locksteward.Notification) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.insert(messages...)
}

func (b *box) insert(messages ...locksteward.Notification) {
	for _, m := range messages {
		if slices.ContainsFunc(b.rows, func(r *row) bool { return r.ID == m.ID }) {
			continue
		}
		m.CreatedAt = time.Now()
		b.rows = append(b.rows, &row{Notification: m, state: "waiting"})
	}
}

func (b *box) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.away = err
}

// first is whether none of its ordering waits before the row.
func (b *box) first(r *row) bool {
	for _, p := range b.rows {
		if p == r {
			return true
		}
		if p.Receiver == r.Receiver && p.Ordering != "" && p.Ordering == r.Ordering && p.state == "waiting" {
			return false
		}
	}
	return true
}

// most is how urgent a row is: as what waits behind it.
func (b *box) most(r *row) int {
	most := r.Urgency
	for _, p := range b.rows[slices.Index(b.rows, r):] {
		if p.Receiver == r.Receiver && p.Ordering != "" && p.Ordering == r.Ordering && p.state == "waiting" {
			most = max(most, p.Urgency)
		}
	}
	return most
}

// above is the urgency that a group must exceed to come before what waits.
func (b *box) above(receiver, behind string) int {
	above := -1
	for _, r := range b.rows {
		if behind != "" && r.Receiver == receiver && r.Ordering == behind && r.state == "waiting" {
			above = max(above, b.most(r))
		}
	}
	return above
}

func (b *box) Claim(ctx context.Context, receiver string, ttl time.Duration, limit int) ([]locksteward.Notification, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := errors.Join(b.away, ctx.Err()); err != nil {
		return nil, err
	}
	now := time.Now()
	var out []locksteward.Notification
	rows := slices.Clone(b.rows)
	slices.SortStableFunc(rows, func(x, y *row) int { return cmp.Compare(b.most(y), b.most(x)) })
	for _, r := range rows {
		if r.Receiver != receiver || r.state != "waiting" || r.next.After(now) || r.claimed.After(now) || !b.first(r) || len(out) == limit {
			continue
		}
		r.Attempts++
		r.claim++
		r.claimed = now.Add(ttl)
		m := r.Notification
		m.Claim = fmt.Sprint(r.claim)
		out = append(out, m)
	}
	return out, nil
}

func (b *box) NextDue(_ context.Context, receiver string) (time.Duration, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.away != nil {
		return 0, false, b.away
	}
	wait, found := time.Duration(0), false
	for _, r := range b.rows {
		if r.Receiver != receiver || r.state != "waiting" || !b.first(r) {
			continue
		}
		due := r.next
		if r.claimed.After(due) {
			due = r.claimed
		}
		if in := max(0, time.Until(due)); !found || in < wait {
			wait, found = in, true
		}
	}
	return wait, found, nil
}

func (b *box) record(m locksteward.Notification, fn func(*row)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.away != nil {
		return b.away
	}
	for _, r := range b.rows {
		if r.ID == m.ID && r.state == "waiting" && fmt.Sprint(r.claim) == m.Claim && !r.claimed.IsZero() {
			r.claimed = time.Time{}
			fn(r)
			return nil
		}
	}
	return fmt.Errorf("%s: %w", m.ID, locksteward.ErrClaimLost)
}

func (b *box) Delivered(_ context.Context, m locksteward.Notification) error {
	if b.slow != nil {
		<-b.slow
	}
	return b.record(m, func(r *row) { r.state = "delivered" })
}

func (b *box) Retry(_ context.Context, m locksteward.Notification, why error, after time.Duration) error {
	return b.record(m, func(r *row) { r.next, r.why = time.Now().Add(after), why })
}

func (b *box) DeadLetter(_ context.Context, m locksteward.Notification, why error) error {
	return b.record(m, func(r *row) { r.state, r.why = "dead", why })
}

func (b *box) RetryNow(_ context.Context, receiver string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.rows {
		if r.Receiver == receiver && r.claimed.IsZero() {
			r.next = time.Time{}
		}
	}
	return b.away
}

func (b *box) DeadLetterAll(_ context.Context, receiver string, age time.Duration, why error) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var n int64
	for _, r := range b.rows {
		if r.Receiver == receiver && r.state == "waiting" && !r.claimed.After(time.Now()) && time.Since(r.CreatedAt) >= age {
			r.state, r.why = "dead", why
			n++
		}
	}
	return n, b.away
}

func (b *box) Backlogs(context.Context) ([]locksteward.Backlog, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []locksteward.Backlog
	for _, r := range b.rows {
		n := slices.IndexFunc(out, func(x locksteward.Backlog) bool { return x.Receiver == r.Receiver })
		if n < 0 {
			n = len(out)
			out = append(out, locksteward.Backlog{Receiver: r.Receiver})
		}
		switch r.state {
		case "waiting":
			out[n].Waiting++
			out[n].Oldest = max(out[n].Oldest, time.Since(r.CreatedAt))
		case "dead":
			out[n].Dead++
		}
	}
	return out, b.away
}

// states counts the rows of a receiver by state.
func (b *box) states(receiver string) map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := map[string]int{}
	for _, r := range b.rows {
		if r.Receiver == receiver {
			out[r.state]++
		}
	}
	return out
}

// attempts is how often the n-th row was claimed.
func (b *box) attempts(n int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rows[n].Attempts
}

// why is why the last attempt of the n-th row failed.
func (b *box) why(n int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rows[n].why
}

var _ Outbox = (*box)(nil)

// post is a sender on an outbox in memory.
type post struct {
	*Sender
	t   *testing.T
	box *box
}

// notify writes transitions and wakes the sender.
func (p *post) notify(transitions ...locksteward.Transition) {
	p.t.Helper()
	p.write(transitions...)
	p.Wake()
}

// write writes transitions as the transaction of their findings does, and has those
// that are due become messages at once.
func (p *post) write(transitions ...locksteward.Transition) {
	p.t.Helper()
	p.box.change(p.Events(transitions, nil, nil)...)
}
