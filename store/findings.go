package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
)

// SaveFindings makes findings all that is stored of target's findings, in one
// transaction: what is not among them is forgotten.
func (s *Store) SaveFindings(ctx context.Context, target string, findings []locksteward.Finding) error {
	return s.inWrite(ctx, "save findings", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM findings WHERE target = ?`, target); err != nil {
			return err
		}
		if len(findings) == 0 {
			return nil
		}
		insert, err := tx.PrepareContext(ctx,
			`INSERT INTO findings (target, fingerprint, lock_key, finding) VALUES (?, ?, ?, ?)
			 ON CONFLICT (target, fingerprint) DO UPDATE SET lock_key = excluded.lock_key, finding = excluded.finding`)
		if err != nil {
			return err
		}
		defer insert.Close()
		for _, f := range findings {
			raw, err := json.Marshal(newFindingRow(f))
			if err != nil {
				return fmt.Errorf("encode finding of rule %q: %w", f.Rule, err)
			}
			if _, err := insert.ExecContext(ctx, target, f.Fingerprint(), bytesOf(f.Key), string(raw)); err != nil {
				return err
			}
		}
		return nil
	})
}

// LoadFindings returns what [Store.SaveFindings] stored last, in the order of
// fingerprints.
func (s *Store) LoadFindings(ctx context.Context, target string) ([]locksteward.Finding, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT lock_key, finding FROM findings WHERE target = ? ORDER BY fingerprint`, target)
	if err != nil {
		return nil, s.explain("load findings", err)
	}
	defer rows.Close()
	var out []locksteward.Finding
	for rows.Next() {
		var key []byte
		var text string
		if err := rows.Scan(&key, &text); err != nil {
			return nil, s.explain("load findings", err)
		}
		var row findingRow
		if err := json.Unmarshal([]byte(text), &row); err != nil {
			return nil, fmt.Errorf("decode finding of target %q: %w", target, err)
		}
		out = append(out, row.finding(target, string(key)))
	}
	return out, s.explain("load findings", rows.Err())
}

// findingRow is a Finding as it is stored; target and key have columns.
type findingRow struct {
	Rule            string               `json:"rule"`
	Severity        locksteward.Severity `json:"severity"`
	Risk            string               `json:"risk,omitempty"`
	Status          locksteward.Status   `json:"status"`
	DB              int                  `json:"db,omitempty"`
	Class           string               `json:"class"`
	Dialect         string               `json:"dialect,omitempty"`
	Subject         string               `json:"subject,omitempty"`
	Summary         textRow              `json:"summary"`
	Evidence        []string             `json:"evidence,omitempty"`
	CounterEvidence []string             `json:"counter_evidence,omitempty"`
	Cause           textRow              `json:"cause"`
	Remedy          textRow              `json:"remedy"`
	Team            string               `json:"team,omitempty"`
	RunbookURL      string               `json:"runbook_url,omitempty"`
	Proof           locksteward.Proof    `json:"proof,omitempty"`
	InhibitedBy     string               `json:"inhibited_by,omitempty"`
	Since           time.Time            `json:"since,omitzero"`
	FiredAt         time.Time            `json:"fired_at,omitzero"`
	ResolvedAt      time.Time            `json:"resolved_at,omitzero"`
}

type textRow struct {
	EN string `json:"en,omitempty"`
	ZH string `json:"zh,omitempty"`
}

func newFindingRow(f locksteward.Finding) findingRow {
	return findingRow{
		Rule: f.Rule, Severity: f.Severity, Risk: f.Risk, Status: f.Status,
		DB: f.DB, Class: f.Class, Dialect: f.Dialect, Subject: f.Subject,
		Summary: textRow(f.Summary), Evidence: f.Evidence, CounterEvidence: f.CounterEvidence,
		Cause: textRow(f.Cause), Remedy: textRow(f.Remedy), Team: f.Team, RunbookURL: f.RunbookURL,
		Proof: f.Proof, InhibitedBy: f.InhibitedBy,
		Since: f.Since, FiredAt: f.FiredAt, ResolvedAt: f.ResolvedAt,
	}
}

func (r findingRow) finding(target, key string) locksteward.Finding {
	return locksteward.Finding{
		Rule: r.Rule, Severity: r.Severity, Risk: r.Risk, Status: r.Status,
		Target: target, DB: r.DB, Class: r.Class, Key: key, Dialect: r.Dialect, Subject: r.Subject,
		Summary: locksteward.Text(r.Summary), Evidence: r.Evidence, CounterEvidence: r.CounterEvidence,
		Cause: locksteward.Text(r.Cause), Remedy: locksteward.Text(r.Remedy), Team: r.Team, RunbookURL: r.RunbookURL,
		Proof: r.Proof, InhibitedBy: r.InhibitedBy,
		Since: r.Since, FiredAt: r.FiredAt, ResolvedAt: r.ResolvedAt,
	}
}
