package console

import (
	"context"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/signin"
)

// sessionStore keeps sessions in memory, as the agent keeps them in its store.
type sessionStore struct {
	mu      sync.Mutex
	rows    map[string]signin.Session
	entries []locksteward.Entry
	away    error
}

func newSessionStore() *sessionStore { return &sessionStore{rows: map[string]signin.Session{}} }

func (s *sessionStore) SaveSession(_ context.Context, n signin.Session, entries ...locksteward.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away == nil {
		s.rows[n.Digest] = n
		s.entries = append(s.entries, entries...)
	}
	return s.away
}

func (s *sessionStore) LoadSession(_ context.Context, digest string) (signin.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok := s.rows[digest]
	if !ok && s.away == nil {
		return n, locksteward.ErrNotFound
	}
	return n, s.away
}

func (s *sessionStore) TouchSession(_ context.Context, digest string, seen time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, ok := s.rows[digest]; ok && s.away == nil {
		n.Seen = seen
		s.rows[digest] = n
	}
	return s.away
}

func (s *sessionStore) EndSession(_ context.Context, digest string, entries ...locksteward.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.rows[digest]; ok && s.away == nil {
		delete(s.rows, digest)
		s.entries = append(s.entries, entries...)
	}
	return s.away
}

func (s *sessionStore) AppendEntries(_ context.Context, entries ...locksteward.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away == nil {
		s.entries = append(s.entries, entries...)
	}
	return s.away
}

func (s *sessionStore) all() []locksteward.Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]locksteward.Entry(nil), s.entries...)
}

// cheapen gives the first user a password that is checked quickly, and that wrong
// ones are then compared with.
func (b *fixture) cheapen() {
	b.t.Helper()
	raw, err := os.ReadFile(b.file)
	if err != nil {
		b.t.Fatal(err)
	}
	hash, err := bcrypt.GenerateFromPassword([]byte("nobody knows"), bcrypt.MinCost)
	if err != nil {
		b.t.Fatal(err)
	}
	text := strings.Replace(string(raw), "    token_sha256:", "    password_hash: '"+string(hash)+"'\n    token_sha256:", 1)
	if err := os.WriteFile(b.file, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// config lets tests ask as often as they like.
func (b *fixture) config() Config {
	c := Config{Listen: "127.0.0.1:0", UsersFile: b.file}
	c.SignIn.Rate = signin.RateConfig{PerSecond: 100_000}
	if b.edit != nil {
		b.edit(&c.SignIn)
	}
	return c
}

// now stands still but for ahead, so that limits do not depend on the machine.
func (b *fixture) now() time.Time { return b.began.Add(time.Duration(b.ahead.Load())) }
