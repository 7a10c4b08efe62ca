package store

import (
	"context"
	"slices"

	"github.com/locksteward/locksteward"
)

// ImportLine is one line of a file that is imported into the trail.
type ImportLine struct {
	Digest string // of its content, which is imported once
	Entry  locksteward.Entry
}

// ImportEntries appends the entries of the lines that were not imported before, and the
// entry that about returns, in one transaction. Without new lines it appends nothing. It
// returns the number of new lines.
func (s *Store) ImportEntries(ctx context.Context, lines []ImportLine, about func(imported int) locksteward.Entry) (int, error) {
	var imported int
	err := s.inWrite(ctx, "import audit entries", func(ctx context.Context, t *tx) error {
		fresh, err := notImported(ctx, t, lines)
		if err != nil || len(fresh) == 0 {
			return err
		}
		head, _, err := ends(ctx, t)
		if err != nil {
			return err
		}
		var entries []locksteward.Entry
		var rows [][]any
		for i, l := range fresh {
			entries = append(entries, l.Entry)
			rows = append(rows, []any{l.Digest, head.Seq + 1 + int64(i)})
		}
		if err := s.written(ctx, t, Written{Entries: append(entries, about(len(fresh)))}); err != nil {
			return err
		}
		imported = len(fresh)
		return t.insert(ctx, "imported", "line, seq", "", rows)
	})
	if err != nil {
		return 0, err
	}
	return imported, nil
}

// notImported returns the lines that were not imported before, each once.
func notImported(ctx context.Context, t *tx, lines []ImportLine) ([]ImportLine, error) {
	known := map[string]bool{}
	for part := range slices.Chunk(lines, 100) {
		var digests []any
		for _, l := range part {
			digests = append(digests, l.Digest)
		}
		rows, err := t.query(ctx, `SELECT line FROM imported WHERE line IN (`+marks(len(digests))+`)`, digests...)
		err = each(rows, err, func(row rowScanner) error {
			var digest string
			err := row.Scan(&digest)
			known[digest] = true
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	var out []ImportLine
	for _, l := range lines {
		if !known[l.Digest] {
			known[l.Digest] = true
			out = append(out, l)
		}
	}
	return out, nil
}
