package store

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Replica is one of the agents that share the database, until it expires by the database's
// clock.
type Replica struct {
	ID string // unique per run of a process
	// Name is for people; it need not be unique.
	Name string
	// Address is where other replicas reach it, and Key is the digest of its certificate
	// there; the store does not interpret them.
	Address, Key string
	Version      string
	// Targets are the names of the targets in its configuration.
	Targets []string
	// Blind are those that it cannot reach, Sees those that it reaches while another
	// replica cannot.
	Blind, Sees []string
	StartedAt   time.Time // the database's clock, as is Left
	Left        time.Duration
}

// Roll is a snapshot of the replicas and their leases.
type Roll struct {
	Replicas []Replica // in the order of their start
	// Leases are the leases that are held, ordered by target.
	Leases []Lease
}

// Beat records a heartbeat of a replica, which is valid for ttl, renews all leases that it
// still holds, and returns all replicas and leases. A lease of its own that is not among
// them is lost. After another program changed the schema the error is [ErrOtherSchema], and
// nothing is renewed.
func (s *Store) Beat(ctx context.Context, r Replica, ttl time.Duration) (Roll, error) {
	if r.ID == "" || ttl <= 0 {
		return Roll{}, fmt.Errorf("beat: got replica %q, ttl %s; none of them may be empty", r.ID, ttl)
	}
	var roll Roll
	err := s.inLease(ctx, "beat", func(ctx context.Context, t *tx) error {
		roll = Roll{}
		if err := checkSchema(ctx, t); err != nil {
			return err
		}
		_, err := t.exec(ctx,
			`INSERT INTO replicas (id, name, address, key, version, targets, blind, sees, started_at, expires_at)
			 VALUES (?, ?, ?, ?, ?, ?, ?, ?, `+s.on.now+`, `+s.on.now+` + ?)
			 ON CONFLICT (id) DO UPDATE SET name = excluded.name, address = excluded.address, targets = excluded.targets,
				blind = excluded.blind, sees = excluded.sees, expires_at = excluded.expires_at`,
			r.ID, text(r.Name), text(r.Address), r.Key, text(r.Version), joinNames(r.Targets), joinNames(r.Blind), joinNames(r.Sees), ttl.Microseconds())
		if err != nil {
			return err
		}
		_, err = t.exec(ctx, `UPDATE leases SET expires_at = `+s.on.now+` + ? WHERE owner = ? AND expires_at > `+s.on.now, ttl.Microseconds(), r.ID)
		if err != nil {
			return err
		}
		if roll.Leases, err = s.leases(ctx, t); err != nil {
			return err
		}
		roll.Replicas, err = s.replicas(ctx, t)
		return err
	})
	return roll, err
}

// Roll returns the replicas and their leases.
func (s *Store) Roll(ctx context.Context) (Roll, error) {
	var roll Roll
	err := s.inRead(ctx, "list replicas", func(ctx context.Context, q querier) (err error) {
		if roll.Leases, err = s.leases(ctx, q); err != nil {
			return err
		}
		roll.Replicas, err = s.replicas(ctx, q)
		return err
	})
	return roll, err
}

// Leave removes a replica and ends its leases, so that no other waits for their expiry.
func (s *Store) Leave(ctx context.Context, id string) error {
	return s.inLease(ctx, "leave", func(ctx context.Context, t *tx) error {
		if _, err := t.exec(ctx, `UPDATE leases SET expires_at = 0 WHERE owner = ?`, id); err != nil {
			return err
		}
		_, err := t.exec(ctx, `DELETE FROM replicas WHERE id = ?`, id)
		return err
	})
}

// PruneReplicas deletes replicas that expired at least age ago.
func (s *Store) PruneReplicas(ctx context.Context, age time.Duration) (int64, error) {
	var n int64
	err := s.inLease(ctx, "prune replicas", func(ctx context.Context, t *tx) (err error) {
		n, err = t.exec(ctx, `DELETE FROM replicas WHERE expires_at <= `+s.on.now+` - ?`, age.Microseconds())
		return err
	})
	return n, err
}

func (s *Store) replicas(ctx context.Context, q querier) ([]Replica, error) {
	var out []Replica
	rows, err := q.query(ctx, `SELECT id, name, address, key, version, targets, blind, sees, started_at, expires_at - `+s.on.now+`
		FROM replicas WHERE expires_at > `+s.on.now+` ORDER BY started_at, id`)
	err = each(rows, err, func(row rowScanner) error {
		var r Replica
		var targets, blind, sees string
		var started, left int64
		err := row.Scan(&r.ID, &r.Name, &r.Address, &r.Key, &r.Version, &targets, &blind, &sees, &started, &left)
		r.StartedAt, r.Left = fromMicros(started), max(0, time.Duration(left)*time.Microsecond)
		r.Targets, r.Blind, r.Sees = splitNames(targets), splitNames(blind), splitNames(sees)
		out = append(out, r)
		return err
	})
	return out, err
}

// joinNames returns names of targets as they are stored: one per line.
func joinNames(list []string) string { return text(strings.Join(list, "\n")) }

func splitNames(column string) []string {
	if column == "" {
		return nil
	}
	return strings.Split(column, "\n")
}
