package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Lease is one process's right to work on a target, until it expires by the
// database's clock.
type Lease struct {
	Target string
	Owner  string // unique per run of a process
	// Address is where other replicas reach the owner. The store does not interpret it.
	Address string
	// Fence grows with every change of owner and never falls: a write under an
	// older one is refused.
	Fence     int64
	ExpiresAt time.Time // the database's clock
	// Left is the time to the expiry when the database answered. Count it from before
	// the query was sent: the clocks of the database and of this process may differ.
	Left time.Duration
}

// AcquireLease takes the lease of a target that nobody holds, or whose holder let
// it expire. Where somebody else holds it the error is [ErrLeaseHeld], and the
// lease that comes with it is theirs; after a newer program changed the schema it is
// [ErrOtherSchema]. An owner that acquires what it holds
// already gets a new fence: what it did under the old one is over.
func (s *Store) AcquireLease(ctx context.Context, target, owner, address string, ttl time.Duration) (Lease, error) {
	if target == "" || owner == "" || ttl <= 0 {
		return Lease{}, fmt.Errorf("acquire lease: got target %q, owner %q, ttl %s; none of them may be empty", target, owner, ttl)
	}
	var out Lease
	held := false
	err := s.inLease(ctx, "acquire lease", func(ctx context.Context, t *tx) error {
		err := checkSchema(ctx, t)
		if err != nil {
			return err
		}
		out, err = scanLease(t.row(ctx,
			`INSERT INTO leases (target, owner, address, fence, expires_at) VALUES (?, ?, ?, 1, `+s.on.now+` + ?)
			 ON CONFLICT (target) DO UPDATE SET owner = excluded.owner, address = excluded.address,
			     fence = leases.fence + 1, expires_at = excluded.expires_at
			 WHERE leases.expires_at <= `+s.on.now+` OR leases.owner = excluded.owner
			 RETURNING `+leaseColumns(s.on), target, text(owner), text(address), ttl.Microseconds()))
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		held = true
		out, err = scanLease(t.row(ctx, `SELECT `+leaseColumns(s.on)+` FROM leases WHERE target = ?`, target))
		return err
	})
	if err == nil && held {
		err = fmt.Errorf("acquire lease of target %q: %w: %s works on it for another %s", target, ErrLeaseHeld, out.Owner, out.Left.Round(time.Millisecond))
	}
	return out, err
}

// ReleaseLease ends a lease, so that another process need not wait for its
// expiry. One that is lost already is left alone.
func (s *Store) ReleaseLease(ctx context.Context, l Lease) error {
	return s.inLease(ctx, "release lease", func(ctx context.Context, t *tx) error {
		_, err := t.exec(ctx, `UPDATE leases SET expires_at = 0 WHERE target = ? AND owner = ? AND fence = ?`, l.Target, text(l.Owner), l.Fence)
		return err
	})
}

// Leases returns the leases that are held, in the order of targets.
func (s *Store) Leases(ctx context.Context) ([]Lease, error) {
	var out []Lease
	err := s.inRead(ctx, "list leases", func(ctx context.Context, q querier) (err error) {
		out, err = s.leases(ctx, q)
		return err
	})
	return out, err
}

func (s *Store) leases(ctx context.Context, q querier) ([]Lease, error) {
	var out []Lease
	rows, err := q.query(ctx, `SELECT `+leaseColumns(s.on)+` FROM leases WHERE expires_at > `+s.on.now+` ORDER BY target`)
	err = each(rows, err, func(row rowScanner) error {
		l, err := scanLease(row)
		out = append(out, l)
		return err
	})
	return out, err
}

// SingletonDuties is the name of the lease on the work that belongs to no target: its owner sends
// notifications, signs and ships the audit trail, and deletes old rows.
const SingletonDuties = "*"

// Under returns a view of the store that writes what belongs to a target only
// under the lease that lease returns for it, and fails with [ErrLeaseLost] where
// there is none or it is over (a lease may be one on many targets): findings,
// history, holds, facts and requests. Notifications are composed and claimed under the
// lease on the [SingletonDuties]. Audit entries are written in any case, by the replica
// that acted. The view is not closed.
func (s *Store) Under(lease func(target string) (Lease, bool)) *Store {
	view := *s
	view.fences = lease
	return &view
}

// leased checks the fence of a target in the transaction that writes, and keeps
// the lease from being taken over before its end.
func (s *Store) leased(ctx context.Context, t *tx, target string) error {
	if s.fences == nil {
		return nil
	}
	l, ok := s.fences(target)
	if !ok {
		return lost(target)
	}
	var fence int64
	err := t.row(ctx, `SELECT fence FROM leases WHERE target = ? AND owner = ? AND fence = ? AND expires_at > `+s.on.now+s.on.share,
		l.Target, text(l.Owner), l.Fence).Scan(&fence)
	if errors.Is(err, sql.ErrNoRows) {
		return lost(target)
	}
	return err
}

func lost(target string) error {
	return fmt.Errorf("target %q: %w: another process works on it, or nobody; nothing was written", target, ErrLeaseLost)
}

func leaseColumns(on *backend) string {
	return "target, owner, address, fence, expires_at, expires_at - " + on.now
}

func scanLease(row rowScanner) (Lease, error) {
	var l Lease
	var expires, left int64
	err := row.Scan(&l.Target, &l.Owner, &l.Address, &l.Fence, &expires, &left)
	l.ExpiresAt, l.Left = fromMicros(expires), max(0, time.Duration(left)*time.Microsecond)
	return l, err
}
