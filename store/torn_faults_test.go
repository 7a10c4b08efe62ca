package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/store"
)

// files reads what a store on path left on the disk.
func files(t *testing.T, path string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, name := range []string{"", "-wal"} {
		raw, err := os.ReadFile(path + name)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		out[name] = raw
	}
	return out
}

// lay writes such files to a folder of their own and returns the path.
func lay(t *testing.T, of map[string][]byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "locksteward.db")
	for name, raw := range of {
		if err := os.WriteFile(path+name, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// The log of writes ends in the middle of one, has flipped bits, or is followed by
// anything: what is before it is read, whole, and nothing after it.
// fault: 79
func TestTornLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "locksteward.db")
	s := openAt(t, "sqlite:"+path)
	create(t, s, newRequest("r-crash", "lock:a"))
	closeStore(t, s)
	cmd, lines := startChild(t, "loop", "sqlite:"+path)
	for range 40 {
		if !lines.Scan() {
			t.Fatal("child ended early")
		}
	}
	kill(t, cmd)
	left := files(t, path)
	if len(left["-wal"]) < 20_000 {
		t.Fatalf("the log has %d bytes: not what is to be tested", len(left["-wal"]))
	}
	whole := int64(0)
	r := rand.New(rand.NewPCG(79, 1))
	lengths := map[int64]int{}
	for round := range 12 {
		wal := bytes.Clone(left["-wal"])
		what := "nothing"
		switch at := r.IntN(len(wal)); {
		case round == 0:
		case round%3 == 0:
			what, wal = fmt.Sprintf("cut at %d", at), wal[:at]
		case round%3 == 1:
			what = fmt.Sprintf("bit flipped at %d", at)
			wal[at] ^= 1 << r.IntN(8)
		default:
			what = fmt.Sprintf("overwritten from %d", at)
			for i := at; i < min(len(wal), at+5000); i++ {
				wal[i] = byte(r.Uint32())
			}
		}
		s, err := store.Open(t.Context(), "sqlite:"+lay(t, map[string][]byte{"": left[""], "-wal": wal}))
		if err != nil {
			if !errors.Is(err, store.ErrDamaged) {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		n, err := s.Verify(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if round == 0 {
			whole = n
		}
		got, err := s.GetRequest(t.Context(), "r-crash")
		entries, eerr := s.Entries(t.Context(), store.EntryQuery{Limit: 1})
		if err != nil || eerr != nil || n > whole || n > 1 && entries[0].Outcome != got.Outcome {
			t.Errorf("%s: %d entries of %d, the request says %q, %v, %v", what, n, whole, got.Outcome, err, eerr)
		}
		if err := s.AppendEntries(t.Context(), locksteward.Entry{Action: "after"}); err != nil {
			t.Errorf("%s: nothing can be written: %v", what, err)
		}
		lengths[n]++
		closeStore(t, s)
	}
	if len(lengths) < 4 || whole < 30 {
		t.Errorf("%d entries at most, and as many as %v: this shows nothing", whole, lengths)
	}
}

// One bit is flipped somewhere in the file: the trail is broken and says so, the
// file is damaged and says so, or all of the trail is what it was. No bit makes it
// say something else.
// fault: 79
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "locksteward.db")
	s := openAt(t, "sqlite:"+path)
	for n := range 60 {
		r := newRequest(fmt.Sprint("r-", n), fmt.Sprint("lock:", n))
		r.EvidenceHash = fmt.Sprint("e", n)
		create(t, s, r)
	}
	before, err := s.Stored(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	closeStore(t, s) // into the file
	left := files(t, path)
	r := rand.New(rand.NewPCG(79, 2))
	damaged, broken, same := 0, 0, 0
	for range 16 {
		raw := bytes.Clone(left[""])
		at := r.IntN(len(raw))
		for raw[at] == 0 { // most of it is unused
			at = r.IntN(len(raw))
		}
		raw[at] ^= 1 << r.IntN(8)
		s, err := store.Open(t.Context(), "sqlite:"+lay(t, map[string][]byte{"": raw}))
		if err != nil {
			damaged++
			continue
		}
		_, err = s.Verify(t.Context())
		if _, chain := errors.AsType[*store.ChainError](err); chain {
			broken++
		} else if err != nil {
			damaged++
		} else {
			after, err := s.Stored(t.Context())
			if err != nil || !slices.EqualFunc(before, after, func(a, b locksteward.Entry) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
				t.Errorf("bit flipped at %d: a trail that is not what was written passes for whole, %v", at, err)
			}
			same++
		}
		closeStore(t, s)
	}
	t.Logf("%d damaged, %d broken trails, %d whole", damaged, broken, same)
	if damaged+broken == 0 {
		t.Error("no bit made a difference: this shows nothing")
	}
}
