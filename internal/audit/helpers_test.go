package audit_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/audit"
	"github.com/locksteward/locksteward/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openStore(t testing.TB) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "locksteward.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// appendMany appends entries as agents write them, and one in seven as no JSON of
// ours would be.
func appendMany(t testing.TB, s *store.Store, from, n int) {
	t.Helper()
	var entries []locksteward.Entry
	for i := from; i < from+n; i++ {
		e := locksteward.Entry{
			At: time.Unix(int64(i), 1234567), Actor: "ana", Action: "release.request", Target: "orders", Key: fmt.Sprint("lock:order:", i),
			Subject: fmt.Sprint("r-", i), Reason: "stuck <since> \u2028 noon", Outcome: "pending", Detail: json.RawMessage(`{"n":1}`),
		}
		if i%7 == 3 {
			e.Key, e.Detail = "lock:\x00\xff", json.RawMessage(`{ "n" : "<&>" }`)
		}
		if i%7 == 5 {
			e.Detail = nil
		}
		entries = append(entries, e)
	}
	if err := s.AppendEntries(t.Context(), entries...); err != nil {
		t.Fatal(err)
	}
}

// sign keeps a checkpoint of the head.
func sign(t testing.TB, s *store.Store, k *audit.Key) store.SignedCheckpoint {
	t.Helper()
	head, err := s.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := audit.Sign(k, head, time.Now())
	if err := s.SaveCheckpoint(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return c
}

func export(t testing.TB, s *store.Store, o audit.ExportOptions) []byte {
	t.Helper()
	var out bytes.Buffer
	if _, err := audit.Export(t.Context(), s, &out, o); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
