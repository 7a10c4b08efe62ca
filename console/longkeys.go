package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/locksteward/locksteward"
)

// LongKey is the longest key in bytes that an address names as it is. A longer one,
// up to the 512 MiB of Redis, is named by its [KeySum].
const LongKey = 300

// KeySum is the SHA-256 of a key in hex.
func KeySum(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// longRequests is among how many of the newest requests a key is looked for whose
// lock is not there any more.
const longRequests = 500

// keyBySum finds the key that an address names by its digest, among the locks, the
// findings and the newest requests of a target.
func (s *Server) keyBySum(ctx context.Context, target, sum string) (string, error) {
	page, err := s.deps.Locks.ListLocks(LockFilter{Target: target, Sum: sum, Limit: 1})
	if err != nil {
		return "", fmt.Errorf("list locks: %w", err)
	}
	if len(page.Rows) > 0 {
		return page.Rows[0].Key, nil
	}
	for _, f := range s.deps.Findings.Findings() {
		if f.Target == target && len(f.Key) > LongKey && KeySum(f.Key) == sum {
			return f.Key, nil
		}
	}
	requests, err := s.deps.Requests.List(ctx, RequestFilter{Target: target, Limit: longRequests})
	if err != nil {
		return "", fmt.Errorf("list requests: %w", err)
	}
	for _, r := range requests {
		if key := r.Evidence.Key; len(key) > LongKey && KeySum(key) == sum {
			return key, nil
		}
	}
	return "", fmt.Errorf("%w: no lock, finding or request of target %q has a key with this SHA-256; for a lock that ended run `locksteward explain KEY`", locksteward.ErrNotFound, target)
}
