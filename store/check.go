package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/locksteward/locksteward"
)

// checkedTail is how many of the last audit entries [Store.Check] reads.
const checkedTail = 1000

// Check reads the structure of all pages of a file, and the end of the audit trail. Its
// error is an [ErrDamaged] if either is broken. It takes as long as reading the file. In a
// server's database it only checks the end of the trail.
func (s *Store) Check(ctx context.Context) error {
	const op = "check store"
	if err := s.quickCheck(ctx, op); err != nil {
		return s.classify(ctx, ctx, op, err)
	}
	return s.classify(ctx, ctx, op, s.checkTail(ctx, op))
}

// quickCheck reads the structure of all pages of a file.
func (s *Store) quickCheck(ctx context.Context, op string) error {
	if s.file == "" {
		return nil
	}
	var result string
	if err := s.read.row(ctx, `PRAGMA quick_check(1)`).Scan(&result); err != nil {
		return s.explain(op, err)
	}
	if result != "ok" {
		return s.damaged(op, errors.New(strings.Join(strings.Fields(result), " ")))
	}
	return nil
}

// damaged returns an [ErrDamaged] with cause and remedy.
func (s *Store) damaged(op string, cause error) *Error {
	return &Error{Op: op, Path: s.name, Kind: ErrDamaged, Reason: "the file is damaged or not a database", Hint: s.damagedHint(), Err: cause}
}

// checkTail reads the last entries of the trail: each must continue the one before it, and
// the last one must be the recorded head.
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
	from := max(base.Seq, head.Seq-checkedTail) + 1
	if from > base.Seq+1 {
		// The entry before the first one is not read.
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
