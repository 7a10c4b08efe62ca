package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/locksteward/locksteward"
)

// tailOfTrail is how many of the last audit entries [Store.Check] reads.
const tailOfTrail = 1000

// Check reads the structure of all pages of a file, and the end of the audit trail. What
// is broken is an [ErrDamaged]. It takes as long as it takes to read the file. Of a
// server's database it reads the end of the trail alone: the server knows its pages.
func (s *Store) Check(ctx context.Context) error {
	const op = "check store"
	s.turn.RLock()
	defer s.turn.RUnlock()
	if err := s.quickCheck(ctx, op); err != nil {
		return s.judged(ctx, ctx, op, err)
	}
	return s.judged(ctx, ctx, op, s.checkTail(ctx, op))
}

// quickCheck reads the structure of all pages of a file.
func (s *Store) quickCheck(ctx context.Context, op string) error {
	if s.file == "" {
		return nil
	}
	var word string
	if err := s.read.row(ctx, `PRAGMA quick_check(1)`).Scan(&word); err != nil {
		return s.explain(op, err)
	}
	if word != "ok" {
		return s.damaged(op, errors.New(strings.Join(strings.Fields(word), " ")))
	}
	return nil
}

// damaged is an error that says what is broken, and what to do.
func (s *Store) damaged(op string, what error) *Error {
	return &Error{Op: op, Path: s.name, Kind: ErrDamaged, Reason: "the file is damaged or not a database", Hint: s.damagedHint(), Err: what}
}

// checkTail reads the last entries of the trail: each continues the one before it, and
// the last one is its head.
func (s *Store) checkTail(ctx context.Context, op string) error {
	t, err := s.snapshot(ctx)
	if err != nil {
		return err
	}
	defer t.tx.Rollback() //nolint:errcheck // a read has nothing to undo
	head, base, err := ends(ctx, t)
	if err != nil {
		return err
	}
	chain := Chain{Last: base}
	from := max(base.Seq, head.Seq-tailOfTrail) + 1
	if from > base.Seq+1 {
		// Whether the first one continues what was before it is not asked here.
		chain.Last = Checkpoint{}
	}
	err = eachOfPage(ctx, t, from, func(e *locksteward.Entry) error {
		if chain.Last == (Checkpoint{}) && from > 1 {
			chain.Last = Checkpoint{Seq: from - 1, Hash: e.PrevHash}
		}
		return chain.Next(*e)
	})
	if err == nil && chain.Last != head {
		err = &ChainError{Seq: chain.Last.Seq + 1, Problem: fmt.Sprintf("the trail ends here but %d entries were written", head.Seq)}
	}
	if _, broken := errors.AsType[*ChainError](err); broken {
		e := s.damaged(op, err)
		e.Reason = "the end of the audit trail is broken"
		return e
	}
	return err
}
