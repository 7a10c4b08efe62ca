package signin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/crypto/bcrypt"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/users"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a store of sessions that can be away.
type memory struct {
	mu      sync.Mutex
	rows    map[string]Session
	entries []locksteward.Entry
	away    error
}

func (m *memory) SaveSession(_ context.Context, s Session, entries ...locksteward.Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away == nil {
		m.rows[s.Digest] = s
		m.entries = append(m.entries, entries...)
	}
	return m.away
}

func (m *memory) LoadSession(_ context.Context, digest string) (Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.rows[digest]
	if m.away == nil && !ok {
		return s, locksteward.ErrNotFound
	}
	return s, m.away
}

func (m *memory) TouchSession(_ context.Context, digest string, seen time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, ok := m.rows[digest]; ok && m.away == nil {
		s.Seen = seen
		m.rows[digest] = s
	}
	return m.away
}

func (m *memory) EndSession(_ context.Context, digest string, entries ...locksteward.Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.rows[digest]; ok && m.away == nil {
		delete(m.rows, digest)
		m.entries = append(m.entries, entries...)
	}
	return m.away
}

func (m *memory) AppendEntries(_ context.Context, entries ...locksteward.Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away == nil {
		m.entries = append(m.entries, entries...)
	}
	return m.away
}

// actions are the entries as "action subject", in their order.
func (m *memory) actions() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []string
	for _, e := range m.entries {
		out = append(out, e.Action+" "+e.Subject)
	}
	return out
}

func (m *memory) count(action string) int {
	n := 0
	for _, a := range m.actions() {
		if strings.HasPrefix(a, action+" ") {
			n++
		}
	}
	return n
}

// fixture is a desk with a clock of its own.
type fixture struct {
	t     *testing.T
	desk  *Authenticator
	store *memory
	logs  *observer.ObservedLogs
	file  string
	mu    sync.Mutex
	at    time.Time
	set   *users.Set
	// tokens are the API tokens of the users by name.
	tokens map[string]string
}

const password = "correct horse"

// newFixture has ann (viewer), bo (approver), ext (viewer, external) and off, who is
// disabled; all have the same password but ext, who has none.
func newFixture(t *testing.T, edits ...func(*Config)) *fixture {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	b := &fixture{
		t: t, store: &memory{rows: map[string]Session{}}, at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		file: filepath.Join(t.TempDir(), "users.yaml"), tokens: map[string]string{"ann": "lsu_ann", "bo": "lsu_bo", "off": "lsu_off"},
	}
	b.write(fmt.Sprintf(`users:
  - {name: ann, roles: [viewer], password_hash: '%[1]s', token_sha256: [%[2]s]}
  - {name: bo, roles: [approver], teams: [checkout], password_hash: '%[1]s', token_sha256: [%[3]s]}
  - {name: off, roles: [viewer], disabled: true, password_hash: '%[1]s', token_sha256: [%[4]s]}
  - {name: ext, roles: [viewer], external: true}
`, hash, sum("lsu_ann"), sum("lsu_bo"), sum("lsu_off")))
	var cfg Config
	for _, edit := range edits {
		edit(&cfg)
	}
	core, logs := observer.New(zapcore.DebugLevel)
	b.logs = logs
	b.desk, err = New(zap.New(core), cfg, b.users, b.store, b.now)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func sum(token string) string {
	s := sha256.Sum256([]byte(token))
	return hex.EncodeToString(s[:])
}

// write replaces the users file and reads it, as a reload does.
func (b *fixture) write(text string) {
	b.t.Helper()
	if err := os.WriteFile(b.file, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	b.reload()
}

func (b *fixture) reload() {
	b.t.Helper()
	set, err := users.Load(b.file)
	if err != nil {
		b.t.Fatal(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set = set
}

func (b *fixture) users() *users.Set { b.mu.Lock(); defer b.mu.Unlock(); return b.set }
func (b *fixture) now() time.Time    { b.mu.Lock(); defer b.mu.Unlock(); return b.at }

func (b *fixture) pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at = b.at.Add(d)
}

// get is a request from an address; headers are "Name: value".
func get(from string, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/locks", nil)
	r.RemoteAddr = from + ":40000"
	if strings.Contains(from, ":") {
		r.RemoteAddr = "[" + from + "]:40000"
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	return r
}

// signIn tries a password from an address, and returns the cookie.
func (b *fixture) signIn(from, name, password string, cookies ...*http.Cookie) (*http.Cookie, error) {
	b.t.Helper()
	w, r := httptest.NewRecorder(), get(from)
	for _, c := range cookies {
		r.AddCookie(c)
	}
	_, err := b.desk.SignIn(w, r, name, password)
	if set := w.Result().Cookies(); err == nil && len(set) == 1 {
		return set[0], nil
	}
	if err == nil {
		b.t.Fatal("signed in without a cookie")
	}
	return nil, err
}

func (b *fixture) who(r *http.Request, cookies ...*http.Cookie) (Principal, error) {
	for _, c := range cookies {
		r.AddCookie(c)
	}
	return b.desk.Identify(r)
}

// secrets must not be anywhere.
func (b *fixture) noSecrets(secrets ...string) {
	b.t.Helper()
	var all []string
	for _, e := range b.logs.All() {
		all = append(all, fmt.Sprint(e.Message, e.ContextMap()))
	}
	for _, e := range b.store.entries {
		all = append(all, fmt.Sprint(e))
	}
	for row := range maps.Values(b.store.rows) {
		all = append(all, fmt.Sprintf("%+v", row))
	}
	for _, secret := range append(secrets, password, "lsu_") {
		if i := slices.IndexFunc(all, func(line string) bool { return strings.Contains(line, secret) }); i >= 0 {
			b.t.Errorf("%q stands in %s", secret, all[i])
		}
	}
}

var errAway = errors.New("the store is away")
