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

// Ends returns the place behind which the trail begins, that of the last entry
// which retention took, and the place at which it ends.
func (s *Store) Ends(ctx context.Context) (base, head Checkpoint, err error) {
	err = s.inRead(ctx, "read ends of audit trail", func(ctx context.Context, q querier) error {
		var err error
		head, base, err = ends(ctx, q)
		return err
	})
	return base, head, err
}

// Verification is what a verification found.
type Verification struct {
	Entries int64 // good ones
	Base    Checkpoint
	Head    Checkpoint
	// Anchored is how many anchors are on the chain; the others are of places that
	// retention took.
	Anchored int
}

// VerifyOptions say against what a trail is verified.
type VerifyOptions struct {
	// Anchors are places of the chain that were written down elsewhere.
	Anchors []Checkpoint
	// Progress, if set, is called now and then with how many entries are done and
	// how many there are.
	Progress func(done, all int64)
}

// Verify is [Store.VerifyWith] of anchors alone; it returns how many entries it
// found good.
func (s *Store) Verify(ctx context.Context, anchors ...Checkpoint) (int64, error) {
	v, err := s.VerifyWith(ctx, VerifyOptions{Anchors: anchors})
	return v.Entries, err
}

// VerifyWith reads the whole audit trail and checks that nothing was changed,
// dropped, swapped, inserted or cut off, and that each anchor is on it. A break is
// a [ChainError]; what was found before it comes with it. Without an anchor a trail
// that was rewritten as a whole looks good, and so does one cut off with its head.
func (s *Store) VerifyWith(ctx context.Context, o VerifyOptions) (Verification, error) {
	const op = "verify audit trail"
	if err := s.availability.check(op); err != nil {
		return Verification{}, err
	}
	// One transaction, so that head and entries are of the same state. Each page has the
	// timeout of a call, the whole has none.
	t, err := s.snapshot(ctx)
	if err != nil {
		return Verification{}, s.classify(ctx, ctx, op, err)
	}
	defer t.tx.Rollback() //nolint:errcheck // a read has nothing to undo
	v, err := s.verify(ctx, t, o)
	return v, s.classify(ctx, ctx, op, err)
}

func (s *Store) verify(ctx context.Context, q querier, o VerifyOptions) (v Verification, err error) {
	if v.Head, v.Base, err = ends(ctx, q); err != nil {
		return v, err
	}
	on, err := anchorsOf(o.Anchors)
	if err != nil {
		return v, err
	}
	for seq := range on {
		if seq > v.Head.Seq {
			return v, &ChainError{Seq: v.Head.Seq + 1, Problem: fmt.Sprintf("the trail ends here, but the anchor has an entry %d", seq)}
		}
		if seq >= v.Base.Seq {
			v.Anchored++
		}
	}
	chain := Chain{Last: v.Base}
	if err := anchored(on, v.Base); err != nil {
		return v, err
	}
	// The first page has no lower end: before the first entry there is nothing.
	for from := int64(math.MinInt64); ; from = chain.Last.Seq + 1 {
		n, err := s.verifyPage(ctx, q, from, &chain, on)
		v.Entries = chain.Last.Seq - v.Base.Seq
		if err != nil {
			return v, err
		}
		if o.Progress != nil {
			o.Progress(v.Entries, v.Head.Seq-v.Base.Seq)
		}
		if n < pageOfEntries {
			break
		}
	}
	if v.Head != chain.Last {
		return v, &ChainError{Seq: chain.Last.Seq + 1, Problem: fmt.Sprintf("the trail ends here but %d entries were written", v.Head.Seq)}
	}
	return v, nil
}

// anchorsOf puts anchors by their places. Two of one place that differ cannot both
// be of one trail.
func anchorsOf(anchors []Checkpoint) (map[int64]string, error) {
	on := make(map[int64]string, len(anchors))
	for _, a := range anchors {
		if hash, twice := on[a.Seq]; twice && hash != a.Hash {
			return nil, &ChainError{Seq: a.Seq, Problem: "the anchors have two different entries of this number: one of two trails was rewritten"}
		}
		on[a.Seq] = a.Hash
	}
	return on, nil
}

func (s *Store) verifyPage(ctx context.Context, q querier, from int64, chain *Chain, anchors map[int64]string) (n int, err error) {
	ctx, cancel := s.withTimeout(ctx)
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
