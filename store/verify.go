package store

import (
	"context"
	"fmt"
)

// ChainError says where the audit trail is broken.
type ChainError struct {
	Seq     int64  // the first entry that does not fit
	Problem string // what is wrong with it
}

// Error returns the sentence.
func (e *ChainError) Error() string {
	return fmt.Sprintf("audit trail is broken at entry %d: %s; compare with a backup or an export to see what was there", e.Seq, e.Problem)
}

// Verify reads the whole audit trail and checks that nothing was changed,
// dropped, swapped, inserted or cut off. It returns how many entries it found
// good; a break is a [ChainError].
func (s *Store) Verify(ctx context.Context) (int64, error) {
	// One read transaction: head and entries are of the same moment.
	tx, err := s.read.BeginTx(ctx, nil)
	if err != nil {
		return 0, s.explain("verify audit trail", err)
	}
	defer tx.Rollback() //nolint:errcheck // a read has nothing to undo
	rows, err := tx.QueryContext(ctx, "SELECT "+entryColumns+" FROM entries ORDER BY seq")
	if err != nil {
		return 0, s.explain("verify audit trail", err)
	}
	defer rows.Close()
	var good int64
	hash := ""
	for rows.Next() {
		e, err := scanEntry(rows)
		if err != nil {
			return good, s.explain("verify audit trail", err)
		}
		want := good + 1
		switch {
		case e.Seq != want:
			return good, &ChainError{Seq: want, Problem: fmt.Sprintf("it is missing, the next is %d", e.Seq)}
		case e.PrevHash != hash:
			return good, &ChainError{Seq: want, Problem: "it does not continue the entry before it"}
		case HashEntry(e) != e.Hash:
			return good, &ChainError{Seq: want, Problem: "it was changed after it was written"}
		}
		good, hash = want, e.Hash
	}
	if err := rows.Err(); err != nil {
		return good, s.explain("verify audit trail", err)
	}
	var headSeq int64
	var headHash string
	if err := tx.QueryRowContext(ctx, `SELECT seq, hash FROM entries_head WHERE id = 1`).Scan(&headSeq, &headHash); err != nil {
		return good, s.explain("verify audit trail", err)
	}
	if headSeq != good || headHash != hash {
		return good, &ChainError{Seq: good + 1, Problem: fmt.Sprintf("the trail ends here but %d entries were written", headSeq)}
	}
	return good, nil
}
