package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/locksteward/locksteward"
)

// ChangeFindings stores those of target's findings that changed and forgets those
// among them that are resolved, in one transaction. All others stay as they are:
// its cost does not depend on how many there are.
func (s *Store) ChangeFindings(ctx context.Context, target string, changed []locksteward.Finding) error {
	return s.inWrite(ctx, "save findings", func(tx *sql.Tx) error {
		for _, f := range changed {
			if f.Status == locksteward.StatusResolved {
				if _, err := tx.ExecContext(ctx, `DELETE FROM findings WHERE target = ? AND fingerprint = ?`, target, f.Fingerprint()); err != nil {
					return err
				}
				continue
			}
			raw, err := json.Marshal(newFindingRow(f))
			if err != nil {
				return fmt.Errorf("encode finding of rule %q: %w", f.Rule, err)
			}
			if _, err := tx.ExecContext(ctx,
				`INSERT INTO findings (target, fingerprint, lock_key, finding) VALUES (?, ?, ?, ?)
				 ON CONFLICT (target, fingerprint) DO UPDATE SET lock_key = excluded.lock_key, finding = excluded.finding`,
				target, f.Fingerprint(), bytesOf(f.Key), string(raw)); err != nil {
				return err
			}
		}
		return nil
	})
}
