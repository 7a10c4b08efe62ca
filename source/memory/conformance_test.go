package memory_test

import (
	"crypto/rand"
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/sourcetest"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/memory"
)

// inMemory is a store as the suite uses it.
type inMemory struct {
	*memory.Store
	digest locksteward.DigestKey

	mu     sync.Mutex
	tokens map[string]string
}

func (s *inMemory) Source(testing.TB) source.Source     { return s.Store.Source() }
func (s *inMemory) Releaser(testing.TB) source.Releaser { return s.Store }
func (s *inMemory) Free(_ testing.TB, name string)      { s.Delete(name) }

func (s *inMemory) Take(_ testing.TB, name string, ttl time.Duration) {
	h := memory.Hold{Library: "test", Token: rand.Text(), Identity: locksteward.IdentityStrong}
	if ttl > 0 {
		h.Expires = time.Now().Add(ttl)
	}
	s.mu.Lock()
	s.tokens[name] = h.Token
	s.mu.Unlock()
	s.Put(name, h)
}

func (s *inMemory) Held(_ testing.TB, name string) bool {
	s.mu.Lock()
	want := s.tokens[name]
	s.mu.Unlock()
	got, ok := s.Read("t", name)
	return ok && got.TokenDigest == s.digest.Value([]byte(want))
}

func TestConformance(t *testing.T) {
	t.Parallel()
	sourcetest.Conformance(t, 2000, func(testing.TB) sourcetest.Store {
		digest := locksteward.NewDigestKey()
		return &inMemory{Store: memory.New(digest), digest: digest, tokens: map[string]string{}}
	})
}
