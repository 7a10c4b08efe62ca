package store

import (
	"context"
	"fmt"
	"math"

	"github.com/locksteward/locksteward"
)

// pageOfEntries is how many entries are read at once: it bounds how long one
// answer of a database takes.
const pageOfEntries = 5000

// Head returns the last entry's place in the chain: what an anchor keeps.
func (s *Store) Head(ctx context.Context) (Checkpoint, error) {
	var head Checkpoint
	err := s.inRead(ctx, "read head of audit trail", func(ctx context.Context, q querier) error {
		var err error
		head, _, err = ends(ctx, q)
		return err
	})
	return head, err
}

// EachEntry calls fn for the audit entries from seq from on, in their order, and
// ends with the first error of fn. It holds nothing meanwhile: fn may take its
// time. Entries that retention took away are left out.
func (s *Store) EachEntry(ctx context.Context, from int64, fn func(locksteward.Entry) error) error {
	for {
		var page []locksteward.Entry
		err := s.inRead(ctx, "read audit trail", func(ctx context.Context, q querier) error {
			return eachOfPage(ctx, q, from, func(e *locksteward.Entry) error {
				page = append(page, *e)
				return nil
			})
		})
		if err != nil || len(page) == 0 {
			return err
		}
		for _, e := range page {
			if err := fn(e); err != nil {
				return err
			}
		}
		from = page[len(page)-1].Seq + 1
	}
}

// Verify reads the whole audit trail and checks that nothing was changed,
// dropped, swapped, inserted or cut off, and that each anchor, a place of the
// chain that was written down elsewhere, is on it. It returns how many entries it
// found good; a break is a [ChainError]. Without an anchor a trail that was
// rewritten as a whole looks good, and so does one cut off with its head.
func (s *Store) Verify(ctx context.Context, anchors ...Checkpoint) (int64, error) {
	const op = "verify audit trail"
	if err := s.gate.enter(op); err != nil {
		return 0, err
	}
	// One transaction: head and entries are of the same moment. Only its parts
	// are bounded in time.
	t, err := s.snapshot(ctx)
	if err != nil {
		return 0, s.judged(ctx, ctx, op, err)
	}
	defer t.tx.Rollback() //nolint:errcheck // a read has nothing to undo
	good, err := s.verify(ctx, t, anchors)
	return good, s.judged(ctx, ctx, op, err)
}

func (s *Store) verify(ctx context.Context, q querier, anchors []Checkpoint) (int64, error) {
	head, base, err := ends(ctx, q)
	if err != nil {
		return 0, err
	}
	on := map[int64]string{}
	for _, a := range anchors {
		if a.Seq > head.Seq {
			return 0, &ChainError{Seq: head.Seq + 1, Problem: fmt.Sprintf("the trail ends here, but the anchor has an entry %d", a.Seq)}
		}
		on[a.Seq] = a.Hash
	}
	chain := Chain{Last: base}
	good := func() int64 { return chain.Last.Seq - base.Seq }
	if err := anchored(on, base); err != nil {
		return 0, err
	}
	// The first page has no lower end: before the first entry there is nothing.
	for from := int64(math.MinInt64); ; from = chain.Last.Seq + 1 {
		n, err := s.verifyPage(ctx, q, from, &chain, on)
		if err != nil {
			return good(), err
		}
		if n < pageOfEntries {
			break
		}
	}
	if head != chain.Last {
		return good(), &ChainError{Seq: chain.Last.Seq + 1, Problem: fmt.Sprintf("the trail ends here but %d entries were written", head.Seq)}
	}
	return good(), nil
}

func (s *Store) verifyPage(ctx context.Context, q querier, from int64, chain *Chain, anchors map[int64]string) (n int, err error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	err = eachOfPage(ctx, q, from, func(e *locksteward.Entry) error {
		n++
		if err := chain.Next(*e); err != nil {
			return err
		}
		return anchored(anchors, chain.Last)
	})
	return n, err
}

// anchored compares a place of the chain with the anchor of that place, if there
// is one.
func anchored(anchors map[int64]string, at Checkpoint) error {
	if hash, ok := anchors[at.Seq]; ok && hash != at.Hash {
		return &ChainError{Seq: at.Seq, Problem: "it is not the entry that the anchor has: the trail was rewritten"}
	}
	return nil
}

// ends returns where the trail ends, and the place behind which it begins.
func ends(ctx context.Context, q querier) (head, base Checkpoint, err error) {
	err = q.row(ctx, `SELECT seq, hash, base_seq, base_hash FROM entries_head WHERE id = 1`).
		Scan(&head.Seq, &head.Hash, &base.Seq, &base.Hash)
	return head, base, err
}

// eachOfPage calls fn for the next entries; what e points to is valid until fn
// returns.
func eachOfPage(ctx context.Context, q querier, from int64, fn func(e *locksteward.Entry) error) error {
	rows, err := q.query(ctx, "SELECT "+entryColumns+" FROM entries WHERE seq >= ? ORDER BY seq LIMIT ?", from, pageOfEntries)
	return each(rows, err, func(row rowScanner) error {
		e, err := scanEntry(row)
		if err != nil {
			return err
		}
		return fn(&e)
	})
}
