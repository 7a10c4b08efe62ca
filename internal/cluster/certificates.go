package cluster

import (
	"context"
	"slices"
	"time"

	"github.com/locksteward/locksteward/store"
)

// trusts reports whether a certificate's key is of a replica that is present. For one that joined just now it reads the
// membership again, once for all callers and at most once per heartbeat.
func (m *Member) trusts(ctx context.Context, key string) bool {
	if m.hasKey(key) {
		return true
	}
	_, _, _ = m.keyReads.Do("", func() (any, error) {
		if m.hasKey(key) || time.Since(m.keysRead) < m.ttl/heartbeatsPerLease {
			return nil, nil
		}
		m.keysRead = time.Now()
		members, err := m.store.Membership(ctx)
		if err != nil {
			return nil, err
		}
		m.mu.Lock()
		m.members.Replicas = members.Replicas
		m.mu.Unlock()
		return nil, nil
	})
	return m.hasKey(key)
}

func (m *Member) hasKey(key string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.members.Replicas, func(r store.Replica) bool { return r.Key == key })
}
