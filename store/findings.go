package store

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
)

// Outgoing is what receivers are notified of with findings that are written.
type Outgoing struct {
	Notifications []locksteward.Notification // sent as they are
	Events        []locksteward.FindingEvent // wait in groups
}

// SaveFindings replaces the stored findings of a target, with what receivers are notified
// of, in one transaction. findings may be nil for none. A transaction that is begun again
// iterates again.
func (s *Store) SaveFindings(ctx context.Context, target string, findings iter.Seq[locksteward.Finding], out ...Outgoing) error {
	return s.writeFindings(ctx, target, out, allFindings(target, findings))
}

func allFindings(target string, findings iter.Seq[locksteward.Finding]) func(ctx context.Context, t *tx) error {
	return func(ctx context.Context, t *tx) error {
		if _, err := t.exec(ctx, `DELETE FROM findings WHERE target = ?`, target); err != nil {
			return err
		}
		return changedFindings(target, findings)(ctx, t)
	}
}

// UpdateFindings stores those findings of a target that changed and deletes those among
// them that are resolved, with what receivers are notified of, in one transaction. All
// others stay as they are: its cost does not depend on how many there are. changed may be
// nil for none. A transaction that is begun again iterates again.
func (s *Store) UpdateFindings(ctx context.Context, target string, changed iter.Seq[locksteward.Finding], out ...Outgoing) error {
	return s.writeFindings(ctx, target, out, changedFindings(target, changed))
}

// changedFindings writes findings in parts: the memory for a storm does not depend on its
// size. Of several with one fingerprint the last counts.
func changedFindings(target string, changed iter.Seq[locksteward.Finding]) func(ctx context.Context, t *tx) error {
	return func(ctx context.Context, t *tx) error {
		if changed == nil {
			return nil
		}
		var rows latest[string]
		flush := func() error {
			err := writeFindingRows(ctx, t, target, rows.rows)
			rows = latest[string]{}
			return err
		}
		for f := range changed {
			print := f.Fingerprint()
			if f.Status == locksteward.StatusResolved {
				rows.put(print, target, print, nil, nil)
			} else {
				raw, err := json.Marshal(newFindingRow(f))
				if err != nil {
					return fmt.Errorf("encode finding of rule %q: %w", f.Rule, err)
				}
				rows.put(print, target, print, bytesOf(f.Key), string(raw))
			}
			if len(rows.rows) >= eventsAtOnce {
				if err := flush(); err != nil {
					return err
				}
			}
		}
		return flush()
	}
}

// writeFindingRows writes rows of findings, and deletes those that have only a
// fingerprint.
func writeFindingRows(ctx context.Context, t *tx, target string, rows [][]any) error {
	var gone []any
	rows = slices.DeleteFunc(rows, func(row []any) bool {
		over := row[3] == nil
		if over {
			gone = append(gone, row[1])
		}
		return over
	})
	if len(gone) > 0 {
		_, err := t.exec(ctx, `DELETE FROM findings WHERE target = ? AND fingerprint IN (`+marks(len(gone))+`)`, slices.Concat([]any{target}, gone)...)
		if err != nil {
			return err
		}
	}
	return t.insert(ctx, "findings", "target, fingerprint, lock_key, finding",
		"ON CONFLICT (target, fingerprint) DO UPDATE SET lock_key = excluded.lock_key, finding = excluded.finding", rows)
}

// writeFindings waits for other writers only if there is something to notify of: the order
// of notifications and events is one for all.
func (s *Store) writeFindings(ctx context.Context, target string, out []Outgoing, fn func(ctx context.Context, t *tx) error) error {
	rows := 0
	for _, o := range out {
		rows += len(o.Notifications) + len(o.Events)
	}
	s = s.patient(rows)
	write := s.inOwn
	if rows > 0 {
		write = s.inWrite
	}
	return write(ctx, "save findings", func(ctx context.Context, t *tx) error {
		if err := s.leased(ctx, t, target); err != nil {
			return err
		}
		if err := fn(ctx, t); err != nil {
			return err
		}
		for _, o := range out {
			if err := enqueue(ctx, t, o.Notifications); err != nil {
				return err
			}
			if err := addEvents(ctx, t, o.Events); err != nil {
				return err
			}
		}
		return nil
	})
}

// LoadFindings returns the stored findings of a target, in the order of fingerprints.
func (s *Store) LoadFindings(ctx context.Context, target string) ([]locksteward.Finding, error) {
	var out []locksteward.Finding
	after := ""
	for {
		before := len(out)
		err := s.inRead(ctx, "load findings", func(ctx context.Context, q querier) error {
			rows, err := q.query(ctx, `SELECT fingerprint, lock_key, finding FROM findings WHERE target = ? AND fingerprint > ? ORDER BY fingerprint LIMIT ?`,
				target, after, pageRows)
			return each(rows, err, func(row rowScanner) error {
				var key []byte
				var written string
				if err := row.Scan(&after, &key, &written); err != nil {
					return err
				}
				var f findingRow
				if err := json.Unmarshal([]byte(written), &f); err != nil {
					return fmt.Errorf("decode finding of target %q: %w: %w", target, ErrDamaged, err)
				}
				out = append(out, f.finding(target, string(key)))
				return nil
			})
		})
		if err != nil {
			return nil, err
		}
		if len(out)-before < pageRows {
			return out, nil
		}
	}
}

// FindingTargets returns the targets with stored findings, in the order of their names.
func (s *Store) FindingTargets(ctx context.Context) ([]string, error) {
	var out []string
	err := s.inRead(ctx, "list targets of findings", func(ctx context.Context, q querier) error {
		rows, err := q.query(ctx, `SELECT DISTINCT target FROM findings ORDER BY target`)
		return each(rows, err, func(row rowScanner) error {
			var name string
			err := row.Scan(&name)
			out = append(out, name)
			return err
		})
	})
	return out, err
}

// findingRow is a Finding as it is stored; target and key have columns.
type findingRow struct {
	Rule            string                `json:"rule"`
	Severity        locksteward.Severity  `json:"severity"`
	Risk            string                `json:"risk,omitempty"`
	Status          locksteward.Status    `json:"status"`
	DB              int                   `json:"db,omitempty"`
	Class           string                `json:"class"`
	Library         string                `json:"library,omitempty"`
	Subject         string                `json:"subject,omitempty"`
	Summary         locksteward.Message   `json:"summary"`
	Evidence        []locksteward.Message `json:"evidence,omitempty"`
	CounterEvidence []locksteward.Message `json:"counter_evidence,omitempty"`
	Cause           locksteward.Message   `json:"cause"`
	Remedy          locksteward.Message   `json:"remedy"`
	Resolution      locksteward.Message   `json:"resolution,omitzero"`
	Team            string                `json:"team,omitempty"`
	RunbookURL      string                `json:"runbook_url,omitempty"`
	Proof           locksteward.Proof     `json:"proof,omitempty"`
	InhibitedBy     string                `json:"inhibited_by,omitempty"`
	Since           time.Time             `json:"since,omitzero"`
	FiredAt         time.Time             `json:"fired_at,omitzero"`
	ResolvedAt      time.Time             `json:"resolved_at,omitzero"`
}

func newFindingRow(f locksteward.Finding) findingRow {
	return findingRow{
		Rule: f.Rule, Severity: f.Severity, Risk: f.Risk, Status: f.Status,
		DB: f.DB, Class: f.Class, Library: f.Library, Subject: f.Subject,
		Summary: f.Summary, Evidence: f.Evidence, CounterEvidence: f.CounterEvidence,
		Cause: f.Cause, Remedy: f.Remedy, Resolution: f.Resolution, Team: f.Team, RunbookURL: f.RunbookURL,
		Proof: f.Proof, InhibitedBy: f.InhibitedBy,
		Since: f.Since, FiredAt: f.FiredAt, ResolvedAt: f.ResolvedAt,
	}
}

func (r findingRow) finding(target, key string) locksteward.Finding {
	return locksteward.Finding{
		Rule: r.Rule, Severity: r.Severity, Risk: r.Risk, Status: r.Status,
		Target: target, DB: r.DB, Class: r.Class, Key: key, Library: r.Library, Subject: r.Subject,
		Summary: r.Summary, Evidence: r.Evidence, CounterEvidence: r.CounterEvidence,
		Cause: r.Cause, Remedy: r.Remedy, Resolution: r.Resolution, Team: r.Team, RunbookURL: r.RunbookURL,
		Proof: r.Proof, InhibitedBy: r.InhibitedBy,
		Since: r.Since, FiredAt: r.FiredAt, ResolvedAt: r.ResolvedAt,
	}
}
