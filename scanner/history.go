package scanner

import (
	"context"
	"time"
)

// HistoryRow is the part of one hold's history that survives a restart of the
// agent. Times are server time.
type HistoryRow struct {
	Target      string
	DB          int
	Key         string // exact bytes
	TokenDigest string
	FirstSeen   time.Time
	LastSeen    time.Time
	Renewals    int
	LastRenewal time.Time
	RenewEvery  time.Duration
	// ExpireAt is as at the last reading: ms since 1970,
	// locksteward.NoExpireAt for none, 0 if not known.
	ExpireAt int64
	// ClaimID is the acquisition id that the holder wrote; empty if none.
	ClaimID string
}

// HistoryKey names a row of a target.
type HistoryKey struct {
	DB  int
	Key string // exact bytes
}

// HistoryStore keeps histories across restarts. SaveHistory writes upserts and
// removes gone in one transaction and is called with at most 500 of each;
// LoadHistory returns all rows of a target. Both are called by one goroutine
// per target.
type HistoryStore interface {
	SaveHistory(ctx context.Context, target string, upserts []HistoryRow, gone []HistoryKey) error
	LoadHistory(ctx context.Context, target string) ([]HistoryRow, error)
}
