package audit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/audit"
	"github.com/locksteward/locksteward/store"
)

// An export verifies without the store, has what was asked for, and its checkpoints.
func TestExport(t *testing.T) {
	t.Parallel()
	s, k := openStore(t), audit.NewKey()
	appendMany(t, s, 0, 20)
	sign(t, s, &k)
	appendMany(t, s, 20, 20)
	sign(t, s, nil)
	ring := audit.NewKeyring(k.Public())
	for name, c := range map[string]struct {
		o           audit.ExportOptions
		first, last int64
		checkpoints int
		signed      int
	}{
		"all":          {audit.ExportOptions{}, 1, 40, 2, 1},
		"from":         {audit.ExportOptions{From: 21}, 21, 40, 2, 1}, // the one behind which it begins too
		"since":        {audit.ExportOptions{Since: time.Unix(30, 0)}, 31, 40, 1, 0},
		"until":        {audit.ExportOptions{Until: time.Unix(10, 0)}, 1, 10, 0, 0},
		"between":      {audit.ExportOptions{Since: time.Unix(5, 0), Until: time.Unix(25, 0)}, 6, 25, 1, 1},
		"from, since":  {audit.ExportOptions{From: 8, Since: time.Unix(5, 0), Until: time.Unix(25, 0)}, 8, 25, 1, 1},
		"nothing yet":  {audit.ExportOptions{From: 41}, 41, 40, 1, 0},
		"nothing then": {audit.ExportOptions{Since: time.Now().Add(time.Hour)}, 41, 40, 1, 0},
	} {
		var out bytes.Buffer
		done, err := audit.Export(t.Context(), s, &out, c.o)
		if err != nil || done.First != c.first || done.Last != c.last || done.Entries != c.last-c.first+1 || done.Checkpoints != c.checkpoints {
			t.Errorf("%s: %+v, %v", name, done, err)
			continue
		}
		found, err := audit.CheckExport(&out, audit.CheckOptions{Keys: ring})
		if err != nil || found.First != c.first || found.Last != c.last || found.Checkpoints != c.checkpoints || found.Signed != c.signed {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
	for _, from := range []int64{-1, 42} {
		if _, err := audit.Export(t.Context(), s, io.Discard, audit.ExportOptions{From: from}); !errors.Is(err, locksteward.ErrInvalid) {
			t.Errorf("from %d: %v", from, err)
		}
	}
}

// What retention left is exported from there on, with the checkpoint at its begin.
func TestExportAfterPruning(t *testing.T) {
	t.Parallel()
	s, k := openStore(t), audit.NewKey()
	appendMany(t, s, 0, 40)
	if _, err := s.PruneEntries(t.Context(), time.Unix(25, 0)); err != nil {
		t.Fatal(err)
	}
	trail := newTrail(t, s, audit.DefaultConfig(), audit.Options{Key: &k})
	if err := trail.Pruned(t.Context()); err != nil {
		t.Fatal(err)
	}
	out := export(t, s, audit.ExportOptions{})
	found, err := audit.CheckExport(bytes.NewReader(out), audit.CheckOptions{Keys: audit.NewKeyring(k.Public())})
	if err != nil || found.First != 26 || found.Last != 41 || found.Signed != 1 {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := audit.Export(t.Context(), s, io.Discard, audit.ExportOptions{From: 25}); !errors.Is(err, locksteward.ErrInvalid) {
		t.Errorf("%v", err)
	}
	v, err := trail.Verify(t.Context())
	if err != nil || !v.Whole || v.Entries != 16 || v.Base.Seq != 25 || v.Checkpoints != 1 || v.Signed != 1 {
		t.Errorf("%+v, %v", v, err)
	}
}

// A broken trail is not exported as if it were none.
func TestExportOfABrokenTrail(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	appendMany(t, s, 0, 20)
	for name, broken := range map[string]audit.Source{
		"dropped":   spoiled{Store: s, drop: 9},
		"changed":   spoiled{Store: s, change: 9},
		"cut off":   spoiled{Store: s, cut: 9},
		"rewritten": spoiled{Store: s, checkpoint: 9},
	} {
		var out bytes.Buffer
		_, err := audit.Export(t.Context(), broken, &out, audit.ExportOptions{})
		if _, ok := errors.AsType[*store.ChainError](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := audit.CheckExport(&out, audit.CheckOptions{}); err == nil {
			t.Errorf("%s: what came out verifies", name)
		}
	}
}

// spoiled is a store that somebody was at.
type spoiled struct {
	*store.Store
	drop, change, cut, checkpoint int64
}

func (s spoiled) EachEntry(ctx context.Context, from int64, fn func(locksteward.Entry) error) error {
	return s.Store.EachEntry(ctx, from, func(e locksteward.Entry) error {
		switch {
		case e.Seq == s.drop, s.cut > 0 && e.Seq >= s.cut:
			return nil
		case e.Seq == s.change:
			e.Actor = "eve"
		}
		return fn(e)
	})
}

func (s spoiled) AllCheckpoints(context.Context) ([]store.SignedCheckpoint, error) {
	if s.checkpoint == 0 {
		return nil, nil
	}
	return []store.SignedCheckpoint{{Checkpoint: store.Checkpoint{Seq: s.checkpoint, Hash: strings.Repeat("00", 32)}}}, nil
}

// A file is gone on with where it ended, compressed or not, and stays as it was
// after an error.
func TestExportGoesOn(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"trail.jsonl", "trail.jsonl.gz"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, k := openStore(t), audit.NewKey()
			file := filepath.Join(t.TempDir(), name)
			ring := audit.NewKeyring(k.Public())
			for i := range 4 {
				appendMany(t, s, 10*i, 10)
				if i == 1 {
					sign(t, s, &k)
				}
				for range 2 { // the second finds nothing new
					done, err := audit.ExportFile(t.Context(), s, file, true, audit.ExportOptions{})
					if err != nil || done.Last != int64(10*i+10) || done.Entries != done.Last {
						t.Fatalf("%d: %+v, %v", i, done, err)
					}
				}
			}
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if compressed := raw[0] == 0x1f; compressed != strings.HasSuffix(name, ".gz") {
				t.Errorf("compressed: %v", compressed)
			}
			found, err := audit.CheckExport(bytes.NewReader(raw), audit.CheckOptions{Keys: ring})
			if err != nil || found.Entries != 40 || found.Signed != 1 || found.Checkpoints != 1 {
				t.Errorf("%+v, %v", found, err)
			}
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
			stays := func(what string) {
				t.Helper()
				if now, err := os.ReadFile(file); err != nil || !bytes.Equal(now, raw) {
					t.Errorf("%s: the file is another, %v", what, err)
				}
				if left, err := filepath.Glob(filepath.Join(filepath.Dir(file), ".*")); err != nil || len(left) > 0 {
					t.Errorf("%s left %v, %v", what, left, err)
				}
			}
			if _, err := audit.ExportFile(t.Context(), spoiled{Store: s, change: 30}, file, false, audit.ExportOptions{}); err == nil {
				t.Error("a broken trail was exported")
			}
			stays("a broken trail")
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := audit.ExportFile(ctx, s, file, true, audit.ExportOptions{}); err == nil {
				t.Error("exported after the end")
			}
			stays("an interruption")
			// The store was restored from a backup, or rewritten: the file knows more.
			short := openStore(t)
			appendMany(t, short, 0, 10)
			if _, err := audit.ExportFile(t.Context(), short, file, true, audit.ExportOptions{}); err == nil || !strings.Contains(err.Error(), "entry 40") {
				t.Errorf("%v", err)
			}
			stays("a trail that was cut off")
			other := openStore(t)
			appendMany(t, other, 1, 45)
			if _, err := audit.ExportFile(t.Context(), other, file, true, audit.ExportOptions{}); err == nil {
				t.Error("gone on with another trail")
			}
			stays("another trail")
			if _, err := s.PruneEntries(t.Context(), time.Unix(1000, 0)); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(file, int64(len(raw)-3)); err != nil {
				t.Fatal(err)
			}
			if _, err := audit.ExportFile(t.Context(), s, file, true, audit.ExportOptions{}); err == nil {
				t.Error("gone on with a damaged file")
			}
		})
	}
}

// Every one of 10,000 random changes of an export is reported (fewer under the race
// detector): bits, lines that were dropped, doubled or swapped, and ends cut off with
// an anchor known.
func TestCheckExportFindsEveryMutation(t *testing.T) {
	t.Parallel()
	s, k := openStore(t), audit.NewKey()
	appendMany(t, s, 0, 8)
	sign(t, s, &k)
	appendMany(t, s, 8, 6)
	sign(t, s, nil)
	head, err := s.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	whole := export(t, s, audit.ExportOptions{})
	o := audit.CheckOptions{Anchors: []store.Checkpoint{head}, Keys: audit.NewKeyring(k.Public())}
	if found, err := audit.CheckExport(bytes.NewReader(whole), o); err != nil || found.Anchored != 1 || found.Signed != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	shorter := export(t, s, audit.ExportOptions{Until: time.Unix(12, 0)})
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	counts := map[string]int{}
	for range mutations {
		name, changed := mutate(r, whole)
		if r.IntN(50) == 0 {
			name, changed = "an honest export of less", shorter
		}
		if bytes.Equal(changed, whole) {
			continue
		}
		counts[strings.Fields(name)[0]]++
		if _, err := audit.CheckExport(bytes.NewReader(changed), o); err == nil {
			t.Fatalf("seed %d: %s passed", seed, name)
		}
	}
	t.Logf("%v", counts)
	if len(counts) < 6 {
		t.Errorf("only %v", counts)
	}
}

func mutate(r *rand.Rand, whole []byte) (string, []byte) {
	lines := bytes.SplitAfter(bytes.TrimSuffix(whole, []byte("\n")), []byte("\n"))
	lines[len(lines)-1] = append(slices.Clone(lines[len(lines)-1]), '\n')
	i, j := r.IntN(len(lines)), r.IntN(len(lines))
	switch r.IntN(8) {
	case 0, 1, 2:
		out := slices.Clone(whole)
		at := r.IntN(len(out))
		out[at] ^= 1 << r.IntN(8)
		return fmt.Sprintf("flip byte %d to %q", at, out[at]), out
	case 3:
		return fmt.Sprint("drop line ", i), bytes.Join(slices.Delete(slices.Clone(lines), i, min(len(lines), i+1+r.IntN(3))), nil)
	case 4:
		lines[i], lines[j] = lines[j], lines[i]
		return fmt.Sprint("swap lines ", i, j), bytes.Join(lines, nil)
	case 5:
		return fmt.Sprint("double line ", i), bytes.Join(slices.Insert(lines, i, lines[i]), nil)
	case 6:
		return fmt.Sprint("truncate before line ", i), bytes.Join(lines[:i], nil)
	default:
		at := r.IntN(len(whole))
		return fmt.Sprint("cut at byte ", at), whole[:at]
	}
}

// Anchors are read from wherever checkpoints were written down.
func TestReadAnchors(t *testing.T) {
	t.Parallel()
	s, k, other := openStore(t), audit.NewKey(), audit.NewKey()
	appendMany(t, s, 0, 5)
	first := sign(t, s, &k)
	appendMany(t, s, 5, 5)
	second := sign(t, s, &other)
	ring := audit.NewKeyring(k.Public())
	lines := audit.Line(first) + "\n\n" + audit.Line(second) + "\n"
	for name, c := range map[string]struct {
		text             string
		places           int
		signed, unsigned int
	}{
		"lines":  {lines, 2, 1, 1},
		"export": {string(export(t, s, audit.ExportOptions{})), 12, 1, 11},
		"no end": {strings.TrimSpace(lines), 2, 1, 1},
		"CRLF":   {strings.ReplaceAll(lines, "\n", "\r\n"), 2, 1, 1},
	} {
		a, err := audit.ReadAnchors(strings.NewReader(c.text), ring)
		if err != nil || len(a.Places) != c.places || a.Signed != c.signed || a.Unsigned != c.unsigned {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
		if v, err := audit.CheckStore(t.Context(), s, audit.StoreOptions{Keys: ring, Anchors: a.Places}); err != nil || !v.Whole || v.Signed != 1 || v.Checkpoints != 2 {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
	forged := first
	forged.Seq = 4
	for name, c := range map[string]struct{ text, says string }{
		"empty": {"\n", "no checkpoint"}, "prose": {"hello\n", "line 1"}, "forged": {lines + audit.Line(forged) + "\n", "line 4"},
		"half JSON": {lines + `{"seq":`, "line 4"},
	} {
		if _, err := audit.ReadAnchors(strings.NewReader(c.text), ring); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A trail with other entries than were written down is reported, at the entry.
	appendMany(t, s, 10, 1)
	late, err := s.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []store.Checkpoint{{Seq: late.Seq, Hash: first.Hash}, {Seq: late.Seq + 1, Hash: late.Hash}} {
		v, err := audit.CheckStore(t.Context(), s, audit.StoreOptions{Anchors: []store.Checkpoint{a}})
		if err != nil || v.Whole || v.BrokenAt < late.Seq {
			t.Errorf("%+v, %v", v, err)
		}
	}
}
