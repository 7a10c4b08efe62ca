package store_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/store"
)

// columnsOfEntries are what an intruder may touch, with what is stored there.
var columnsOfEntries = map[string]func(e locksteward.Entry) any{
	"seq":       func(e locksteward.Entry) any { return e.Seq },
	"at":        func(e locksteward.Entry) any { return e.At.UnixMicro() },
	"actor":     func(e locksteward.Entry) any { return e.Actor },
	"action":    func(e locksteward.Entry) any { return e.Action },
	"target":    func(e locksteward.Entry) any { return e.Target },
	"lock_key":  func(e locksteward.Entry) any { return []byte(e.Key) },
	"subject":   func(e locksteward.Entry) any { return e.Subject },
	"reason":    func(e locksteward.Entry) any { return e.Reason },
	"outcome":   func(e locksteward.Entry) any { return e.Outcome },
	"detail":    func(e locksteward.Entry) any { return []byte(e.Detail) },
	"prev_hash": func(e locksteward.Entry) any { return e.PrevHash },
	"hash":      func(e locksteward.Entry) any { return e.Hash },
}

// flipped changes one bit of a value, or adds a byte to one that has none. Text
// stays ASCII, which all of it is.
func flipped(r *rand.Rand, v any) any {
	switch v := v.(type) {
	case int64:
		return v ^ 1<<(40+r.IntN(20)) // never another entry's number
	case string:
		b := []byte(v)
		if len(b) == 0 {
			return "x"
		}
		b[r.IntN(len(b))] ^= 1 << r.IntN(4)
		return string(b)
	case []byte:
		if len(v) == 0 {
			return []byte{0}
		}
		b := append([]byte{}, v...)
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		return b
	}
	panic(fmt.Sprintf("no %T is stored", v))
}

// mutation is one thing that an intruder does, and its name.
func mutation(r *rand.Rand, entries []locksteward.Entry) (string, func(exec func(query string, args ...any) error) error) {
	n := int64(len(entries))
	i := r.Int64N(n)
	e := entries[i]
	switch r.IntN(8) {
	case 0, 1, 2:
		columns := slices.Sorted(maps.Keys(columnsOfEntries))
		c := columns[r.IntN(len(columns))]
		v := flipped(r, columnsOfEntries[c](e))
		return fmt.Sprintf("flip %s of %d to %v", c, e.Seq, v), func(exec func(string, ...any) error) error {
			return exec(`UPDATE entries SET `+c+` = ? WHERE seq = ?`, v, e.Seq)
		}
	case 3:
		until := min(n, i+1+r.Int64N(3))
		return fmt.Sprintf("drop %d to %d", e.Seq, until), func(exec func(string, ...any) error) error {
			return exec(`DELETE FROM entries WHERE seq BETWEEN ? AND ?`, e.Seq, until)
		}
	case 4:
		j := (i + 1 + r.Int64N(n-1)) % n
		other := entries[j]
		return fmt.Sprintf("swap %d and %d", e.Seq, other.Seq), func(exec func(string, ...any) error) error {
			return errors.Join(
				exec(`UPDATE entries SET seq = -seq WHERE seq IN (?, ?)`, e.Seq, other.Seq),
				exec(`UPDATE entries SET seq = ? WHERE seq = ?`, e.Seq, -other.Seq),
				exec(`UPDATE entries SET seq = ? WHERE seq = ?`, other.Seq, -e.Seq),
			)
		}
	case 5:
		return fmt.Sprintf("cut off from %d on", e.Seq), func(exec func(string, ...any) error) error {
			return exec(`DELETE FROM entries WHERE seq >= ?`, e.Seq)
		}
	case 6: // a clean cut, which only the anchor tells
		head := store.Checkpoint{}
		if i > 0 {
			head = store.Checkpoint{Seq: entries[i-1].Seq, Hash: entries[i-1].Hash}
		}
		return fmt.Sprintf("cut off from %d on, head and all", e.Seq), func(exec func(string, ...any) error) error {
			return errors.Join(exec(`DELETE FROM entries WHERE seq >= ?`, e.Seq), exec(`UPDATE entries_head SET seq = ?, hash = ?`, head.Seq, head.Hash))
		}
	default:
		column := []string{"seq", "hash", "base_seq", "base_hash"}[r.IntN(4)]
		v := flipped(r, map[string]any{"seq": n, "hash": entries[n-1].Hash, "base_seq": int64(0), "base_hash": ""}[column])
		return fmt.Sprintf("flip %s of the head to %v", column, v), func(exec func(string, ...any) error) error {
			return exec(`UPDATE entries_head SET `+column+` = ?`, v)
		}
	}
}

// Every one of 10,000 random changes of the stored trail is reported (fewer under the
// race detector).
// fault: 79
func TestVerifyFindsEveryMutation(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		mutations := mutations
		if p.postgres {
			mutations /= 10 // the same code; the server takes a while for each
		}
		const entries = 5
		s := p.open(t)
		if !p.postgres {
			s = openAt(t, "sqlite::memory:")
		}
		appendMany(t, s, entries)
		trail, err := s.Stored(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		head, err := s.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 0))
		for range mutations {
			name, tamper := mutation(r, trail)
			_, err, serr := s.Tampered(t.Context(), []store.Checkpoint{head}, tamper)
			if serr != nil {
				t.Fatalf("%s: %v", name, serr)
			}
			if _, broken := errors.AsType[*store.ChainError](err); !broken {
				t.Fatalf("seed %d: %s passed: %v", seed, name, err)
			}
		}
		verified(t, s, entries)
	})
}

// BenchmarkVerify reads a trail of a million entries: at most 10 s.
func BenchmarkVerify(b *testing.B) {
	s := openFile(b)
	const entries = 1_000_000
	appendMany(b, s, entries)
	for b.Loop() {
		verified(b, s, entries)
	}
}
