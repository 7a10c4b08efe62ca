package store

import (
	"context"
	"fmt"
	"math"

	"github.com/locksteward/locksteward"
)

// pageOfEntries is how many entries one query reads, which bounds its time.
const pageOfEntries = 5000

// Head returns the place of the last entry in the chain, for use as an anchor.
func (s *Store) Head(ctx context.Context) (Checkpoint, error) {
	var head Checkpoint
	err := s.inRead(ctx, "read head of audit trail", func(ctx context.Context, q querier) error {
		var err error
		head, _, err = ends(ctx, q)
		return err
	})
	return head, err
}

// EachEntry calls fn for the audit entries from number from on, in order, until fn returns
// an error. It holds no lock or connection during fn, which may be slow. Entries that
// retention deleted are left out.
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

// Ends returns the last place that retention deleted, which the trail continues, and the
// last place of the trail.
func (s *Store) Ends(ctx context.Context) (base, head Checkpoint, err error) {
	err = s.inRead(ctx, "read ends of audit trail", func(ctx context.Context, q querier) error {
		var err error
		head, base, err = ends(ctx, q)
		return err
	})
	return base, head, err
}

// Verification is the result of a verification.
type Verification struct {
	Entries int64 // unbroken from Base
	Base    Checkpoint
	Head    Checkpoint
	// Anchored is how many anchors are on the chain; the others are of entries that
	// retention deleted.
	Anchored int
}

// VerifyOptions are the options of [Store.VerifyWith].
type VerifyOptions struct {
	// Anchors are places of the chain that were kept outside the store.
	Anchors []Checkpoint
	// Progress, if set, is called after each page with the number of verified entries and of
	// all.
	Progress func(done, all int64)
}

// Verify is [Store.VerifyWith] with anchors only. It returns the number of verified entries.
func (s *Store) Verify(ctx context.Context, anchors ...Checkpoint) (int64, error) {
	v, err := s.VerifyWith(ctx, VerifyOptions{Anchors: anchors})
	return v.Entries, err
}

// VerifyWith reads the whole audit trail and checks that no entry was changed, deleted,
// swapped, inserted or cut off, and that each anchor is on it. A break is a [ChainError],
// and the result covers the entries before it. Without an anchor, a trail that was
// rewritten as a whole, or cut off together with its head, is not detected.
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
	// The first page has no lower bound: no entry may come before the first one.
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

// anchorsOf returns anchors by their places. Two anchors that differ in one place cannot
// belong to one trail.
func anchorsOf(anchors []Checkpoint) (map[int64]string, error) {
	on := make(map[int64]string, len(anchors))
	for _, a := range anchors {
		if hash, exists := on[a.Seq]; exists && hash != a.Hash {
			return nil, &ChainError{Seq: a.Seq, Problem: "the anchors have two different entries with this number: they belong to two trails"}
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

// anchored compares a place of the chain with its anchor, if there is one.
func anchored(anchors map[int64]string, at Checkpoint) error {
	if hash, ok := anchors[at.Seq]; ok && hash != at.Hash {
		return &ChainError{Seq: at.Seq, Problem: "it is not the entry that the anchor has: the trail was rewritten"}
	}
	return nil
}

// ends returns the last place of the trail, and the place that it continues.
func ends(ctx context.Context, q querier) (head, base Checkpoint, err error) {
	err = q.row(ctx, `SELECT seq, hash, base_seq, base_hash FROM entries_head WHERE id = 1`).
		Scan(&head.Seq, &head.Hash, &base.Seq, &base.Hash)
	return head, base, err
}

// eachOfPage calls fn for the next entries; e is valid until fn returns.
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
