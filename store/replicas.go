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
	ID   string // unique per run of a process
	Name string // for people; several replicas may have the same
	// Address is where other replicas reach it, and Key is the digest of the certificate
	// that it presents there. The store does not interpret them.
	Address, Key string
	Version      string
	Targets      []string // names of the targets in its configuration
	// Unreachable are the names of the targets that it cannot reach. Reachable are those of the targets
	// that it reaches while another replica cannot.
	Unreachable, Reachable []string
	StartedAt              time.Time // the database's clock, as is Left
	Left                   time.Duration
}

// Membership is the replicas that share the database and their leases, at one moment.
type Membership struct {
	Replicas []Replica // in the order of their start
	Leases   []Lease   // those that have not expired, in the order of targets
}

// Heartbeat keeps a replica in the membership for ttl from now, renews the leases that it
// owns, and returns the membership. A lease of its own that is not among those
// returned is lost: it expired, or another replica acquired it. After another program changed the
// schema the error is [ErrOtherSchema], and nothing is renewed.
func (s *Store) Heartbeat(ctx context.Context, r Replica, ttl time.Duration) (Membership, error) {
	if r.ID == "" || ttl <= 0 {
		return Membership{}, fmt.Errorf("heartbeat: got replica %q, ttl %s; none of them may be empty", r.ID, ttl)
	}
	var members Membership
	err := s.inLease(ctx, "heartbeat", func(ctx context.Context, t *tx) error {
		members = Membership{}
		if err := checkSchema(ctx, t); err != nil {
			return err
		}
		_, err := t.exec(ctx,
			`INSERT INTO replicas (id, name, address, key, version, targets, unreachable, reachable, started_at, expires_at)
			 VALUES (?, ?, ?, ?, ?, ?, ?, ?, `+s.on.now+`, `+s.on.now+` + ?)
			 ON CONFLICT (id) DO UPDATE SET name = excluded.name, address = excluded.address, targets = excluded.targets,
				unreachable = excluded.unreachable, reachable = excluded.reachable, expires_at = excluded.expires_at`,
			r.ID, text(r.Name), text(r.Address), r.Key, text(r.Version), names(r.Targets), names(r.Unreachable), names(r.Reachable), ttl.Microseconds())
		if err != nil {
			return err
		}
		_, err = t.exec(ctx, `UPDATE leases SET expires_at = `+s.on.now+` + ? WHERE owner = ? AND expires_at > `+s.on.now, ttl.Microseconds(), r.ID)
		if err != nil {
			return err
		}
		if members.Leases, err = s.leases(ctx, t); err != nil {
			return err
		}
		members.Replicas, err = s.replicas(ctx, t)
		return err
	})
	return members, err
}

// Membership returns the replicas that share the database now.
func (s *Store) Membership(ctx context.Context) (Membership, error) {
	var members Membership
	err := s.inRead(ctx, "list replicas", func(ctx context.Context, q querier) (err error) {
		if members.Leases, err = s.leases(ctx, q); err != nil {
			return err
		}
		members.Replicas, err = s.replicas(ctx, q)
		return err
	})
	return members, err
}

// Leave removes a replica from the membership and ends its leases, so that no other replica waits for their expiry.
func (s *Store) Leave(ctx context.Context, id string) error {
	return s.inLease(ctx, "leave", func(ctx context.Context, t *tx) error {
		if _, err := t.exec(ctx, `UPDATE leases SET expires_at = 0 WHERE owner = ?`, id); err != nil {
			return err
		}
		_, err := t.exec(ctx, `DELETE FROM replicas WHERE id = ?`, id)
		return err
	})
}

// PruneReplicas deletes replicas whose heartbeats ended age ago or longer, and returns how many.
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
	rows, err := q.query(ctx, `SELECT id, name, address, key, version, targets, unreachable, reachable, started_at, expires_at - `+s.on.now+`
		FROM replicas WHERE expires_at > `+s.on.now+` ORDER BY started_at, id`)
	err = each(rows, err, func(row rowScanner) error {
		var r Replica
		var targets, unreachable, reachable string
		var started, left int64
		err := row.Scan(&r.ID, &r.Name, &r.Address, &r.Key, &r.Version, &targets, &unreachable, &reachable, &started, &left)
		r.StartedAt, r.Left = fromMicros(started), max(0, time.Duration(left)*time.Microsecond)
		r.Targets, r.Unreachable, r.Reachable = named(targets), named(unreachable), named(reachable)
		out = append(out, r)
		return err
	})
	return out, err
}

// names encodes names of targets for one column, one per line; named decodes them.
func names(list []string) string { return text(strings.Join(list, "\n")) }

func named(column string) []string {
	if column == "" {
		return nil
	}
	return strings.Split(column, "\n")
}
