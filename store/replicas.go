package store

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Replica is one agent of those that share the database, until it expires by the
// database's clock.
type Replica struct {
	ID string // unique per run of a process
	// Name is what people call it; several may have the same.
	Name string
	// Address is where others reach it, and Key is the digest of the certificate
	// that it shows there; the store does not look at them.
	Address, Key string
	Version      string
	// Targets are the names of the targets that it could work on.
	Targets []string
	// Blind are the names of those that it cannot reach, Sees of those that it reaches
	// while another replica cannot.
	Blind, Sees []string
	StartedAt   time.Time // the database's clock, as is Left
	Left        time.Duration
}

// Roll is who shares the database and who works on what, at one moment.
type Roll struct {
	Replicas []Replica // in the order of their start
	// Leases are those that are held, in the order of targets.
	Leases []Lease
}

// Beat says that a replica is there for ttl from now, renews all leases that it
// holds still, and returns who is there. A lease of its own that is not among those
// returned is lost: it expired, or another took it. Where a newer program changed the
// schema it is [ErrOtherSchema], and nothing is renewed.
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
			r.ID, text(r.Name), text(r.Address), r.Key, text(r.Version), names(r.Targets), names(r.Blind), names(r.Sees), ttl.Microseconds())
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

// Roll returns who shares the database now.
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

// Leave ends a replica and all its leases: nobody waits for their expiry.
func (s *Store) Leave(ctx context.Context, id string) error {
	return s.inLease(ctx, "leave", func(ctx context.Context, t *tx) error {
		if _, err := t.exec(ctx, `UPDATE leases SET expires_at = 0 WHERE owner = ?`, id); err != nil {
			return err
		}
		_, err := t.exec(ctx, `DELETE FROM replicas WHERE id = ?`, id)
		return err
	})
}

// PruneReplicas forgets replicas that vanished, age ago or longer.
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
		r.Targets, r.Blind, r.Sees = named(targets), named(blind), named(sees)
		out = append(out, r)
		return err
	})
	return out, err
}

// names are names of targets as one column has them, one a line.
func names(list []string) string { return text(strings.Join(list, "\n")) }

func named(column string) []string {
	if column == "" {
		return nil
	}
	return strings.Split(column, "\n")
}
