package store_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/locksteward/locksteward/store"
)

// rootOf is where the first page of a table begins in the file, which has all that was
// written.
func rootOf(t *testing.T, s *store.Store, table string) int64 {
	t.Helper()
	if err := s.Exec(t.Context(), `PRAGMA wal_checkpoint(TRUNCATE)`); err != nil {
		t.Fatal(err)
	}
	var page, size int64
	err := s.SQL().QueryRowContext(t.Context(), `SELECT rootpage, page_size FROM sqlite_master, pragma_page_size WHERE name = ?`, table).Scan(&page, &size)
	if err != nil {
		t.Fatal(err)
	}
	return (page - 1) * size
}

// A file that is damaged, at its head or in its middle, is set aside as a whole where
// that is wanted, and an empty store is begun in its place; else it is left as it is.
// fault: 79
func TestDamagedFileIsSetAside(t *testing.T) {
	t.Parallel()
	for name, middle := range map[string]bool{"head": false, "middle": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "locksteward.db")
			aside := store.Config{DSN: "sqlite:" + path, OnDamage: store.OnDamageSetAside}
			s, err := store.OpenConfig(t.Context(), aside)
			if err != nil || s.SetAside() != "" {
				t.Fatalf("%v, %q is set aside", err, s.SetAside())
			}
			appendMany(t, s, 30)
			at := int64(0)
			if middle {
				at = rootOf(t, s, "imported")
			}
			closeStore(t, s)
			var asides []string
			for round := range 2 {
				raw, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				copy(raw[at:], bytes.Repeat([]byte{0xff}, 4096))
				if err := os.WriteFile(path, raw, 0o600); err != nil {
					t.Fatal(err)
				}
				refused, err := store.OpenConfig(t.Context(), store.Config{DSN: aside.DSN})
				switch e, ok := errors.AsType[*store.Error](err); {
				case middle && err == nil: // nothing has met it yet
					if err := refused.Check(t.Context()); !errors.Is(err, store.ErrDamaged) || refused.Health().Damaged == "" {
						t.Errorf("the check says %v, and the store %+v", err, refused.Health())
					}
					closeStore(t, refused)
				case !ok || !errors.Is(err, store.ErrDamaged) || !strings.Contains(e.Hint, "store.on_damage: set_aside") || !strings.Contains(e.Hint, "audit verify"):
					t.Fatalf("without being told to: %v", err)
				}
				if left, err := os.ReadFile(path); err != nil || !bytes.Equal(left, raw) {
					t.Fatalf("a file that is refused was changed, %v", err)
				}

				s, err := store.OpenConfig(t.Context(), aside)
				if err != nil {
					t.Fatal(err)
				}
				asides = append(asides, s.SetAside())
				if left, err := os.ReadFile(s.SetAside()); err != nil || !bytes.Equal(left, raw) {
					t.Errorf("what was set aside as %q is not what there was, %v", s.SetAside(), err)
				}
				if got := aside.Damaged(); len(got) != round+1 || !slices.Equal(got, asides) {
					t.Errorf("beside the store lie %q, want %q", got, asides)
				}
				if err := s.Check(t.Context()); err != nil {
					t.Error(err)
				}
				if older, is, err := s.Older(t.Context()); is || err != nil {
					t.Errorf("older: %+v, %v", older, err)
				}
				verified(t, s, 0)
				appendMany(t, s, 3)
				if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("%v, %v", info, err)
				}
				if middle {
					at = rootOf(t, s, "imported")
				}
				closeStore(t, s)
			}
			if s, err := store.OpenConfig(t.Context(), aside); err != nil || s.SetAside() != "" {
				t.Errorf("a file that is whole: %v", err)
			} else {
				verified(t, s, 3)
				closeStore(t, s)
			}
		})
	}
}

// A file in which no agent ever wrote is left alone, whatever the configuration says of
// damage: the dsn may name it by mistake.
// fault: 79
func TestForeignFileIsNotSetAside(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "notes.txt")
	raw := []byte(strings.Repeat("this is no database ", 500))
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := store.Config{DSN: "sqlite:" + path, OnDamage: store.OnDamageSetAside}
	if _, err := store.OpenConfig(t.Context(), cfg); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadFile(path); err != nil || !bytes.Equal(left, raw) || len(cfg.Damaged()) > 0 {
		t.Errorf("it was changed or moved: %v, %q", err, cfg.Damaged())
	}
}
