package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/store"
)

// Checkpoints come back as they were kept, page by page, and retention leaves the
// one at the begin.
func TestCheckpointsAreKept(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		appendMany(t, s, 30)
		entries, err := s.Stored(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		at := time.Date(2026, 11, 1, 12, 0, 0, 123456000, time.UTC)
		for i := 4; i < 30; i += 5 {
			c := store.SignedCheckpoint{Checkpoint: store.Checkpoint{Seq: entries[i].Seq, Hash: entries[i].Hash}, At: at, KeyID: "k", Signature: "s"}
			if err := s.SaveCheckpoint(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.SaveCheckpoint(t.Context(), store.SignedCheckpoint{}); err == nil {
			t.Error("a checkpoint of nothing was kept")
		}
		all, err := s.AllCheckpoints(t.Context())
		if err != nil || len(all) != 6 || all[0].Seq != 5 || !all[0].At.Equal(at) || all[0].KeyID != "k" || all[0].Signature != "s" || all[0].Hash != entries[4].Hash {
			t.Fatalf("%+v, %v", all, err)
		}
		page, err := s.Checkpoints(t.Context(), store.CheckpointQuery{Before: 25, Limit: 2})
		if err != nil || len(page) != 2 || page[0].Seq != 20 || page[1].Seq != 15 {
			t.Errorf("%+v, %v", page, err)
		}
		page, err = s.Checkpoints(t.Context(), store.CheckpointQuery{After: 10, Before: 21, Ascending: true})
		if err != nil || len(page) != 2 || page[0].Seq != 15 {
			t.Errorf("%+v, %v", page, err)
		}
		// The entries 1 to 15 were made before the second 15.
		if n, err := s.PruneEntries(t.Context(), time.Unix(15, 0)); err != nil || n != 15 {
			t.Fatalf("pruned %d, %v", n, err)
		}
		if n, err := s.PruneCheckpoints(t.Context()); err != nil || n != 2 {
			t.Errorf("pruned %d, %v", n, err)
		}
		base, head, err := s.Ends(t.Context())
		if err != nil || base.Seq != 15 || base.Hash != entries[14].Hash || head.Seq != 31 {
			t.Errorf("%+v, %+v, %v", base, head, err)
		}
		if left, err := s.AllCheckpoints(t.Context()); err != nil || len(left) != 4 || left[0].Checkpoint != base {
			t.Errorf("%+v, %v", left, err)
		}
		for at, want := range map[int64]int64{0: 16, 15: 16, 20: 21, 5000: 31} { // the last is the word about the pruning
			if got, err := s.PlaceAt(t.Context(), time.Unix(at, 0)); err != nil || got != want {
				t.Errorf("the first entry since %d is %d, %v; want %d", at, got, err, want)
			}
		}
		if got, err := s.PlaceAt(t.Context(), time.Now().Add(time.Hour)); err != nil || got != 0 {
			t.Errorf("an entry of the future: %d, %v", got, err)
		}
	})
}

// Every filter selects what it says, alone and with others, and text is no pattern.
func TestEntriesAreFiltered(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		at := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
		for i, e := range []locksteward.Entry{
			{Actor: "ana", Action: "release.request", Target: "main", Key: "lock:a\xff", Subject: "r-1", Reason: "50% done"},
			{Actor: "Bo", Action: "release.approve", Target: "main", Key: "lock:b", Subject: "r-1", Reason: "x_y"},
			{Actor: "agent", Action: "agent.start", Reason: "Ärger!"},
			{Actor: "ana", Action: "release.deny", Target: "other", Key: "lock:a\xff", Subject: "r-2", Reason: "500 done"},
		} {
			e.At = at.Add(time.Duration(i) * time.Minute)
			if err := s.AppendEntries(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		for name, c := range map[string]struct {
			q    store.EntryQuery
			want string
		}{
			"all":              {store.EntryQuery{}, "4 3 2 1"},
			"oldest first":     {store.EntryQuery{Ascending: true, After: 1}, "2 3 4"},
			"limit":            {store.EntryQuery{Ascending: true, Limit: 2}, "1 2"},
			"between":          {store.EntryQuery{After: 1, Before: 4}, "3 2"},
			"actor":            {store.EntryQuery{Actor: "ana"}, "4 1"},
			"key":              {store.EntryQuery{Key: "lock:a\xff"}, "4 1"},
			"since":            {store.EntryQuery{Since: at.Add(2 * time.Minute)}, "4 3"},
			"until":            {store.EntryQuery{Until: at.Add(2 * time.Minute)}, "2 1"},
			"search key":       {store.EntryQuery{Search: "a\xff"}, "4 1"},
			"search actor":     {store.EntryQuery{Search: "bO"}, "2"},
			"search action":    {store.EntryQuery{Search: "START"}, "3"},
			"search percent":   {store.EntryQuery{Search: "50%"}, "1"},
			"search low line":  {store.EntryQuery{Search: "x_y"}, "2"},
			"search bang":      {store.EntryQuery{Search: "ger!"}, "3"},
			"search not ASCII": {store.EntryQuery{Search: "Ä"}, "3"},
			"no small letters": {store.EntryQuery{Search: "ä"}, ""},
			"search subject":   {store.EntryQuery{Search: "r-1", Target: "main"}, "2 1"},
			"injection":        {store.EntryQuery{Search: "' OR 1=1 --"}, ""},
			"NUL":              {store.EntryQuery{Search: "\x00"}, ""},
		} {
			list, err := s.Entries(t.Context(), c.q)
			var got []string
			for _, e := range list {
				got = append(got, fmt.Sprint(e.Seq))
			}
			if err != nil || strings.Join(got, " ") != c.want {
				t.Errorf("%s: %v, %v; want %s", name, got, err, c.want)
			}
		}
	})
}

// A line is taken in once, however often its file comes, and with word of it.
func TestImportEntries(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		lines := func(names ...string) []store.ImportLine {
			var out []store.ImportLine
			for _, n := range names {
				out = append(out, store.ImportLine{Digest: n, Entry: locksteward.Entry{Action: "unlock.intent", Subject: n}})
			}
			return out
		}
		about := func(n int) locksteward.Entry {
			return locksteward.Entry{Action: "audit.import", Detail: json.RawMessage(fmt.Sprint(n))}
		}
		for i, c := range []struct {
			names   []string
			want    int
			entries int64
		}{{[]string{"a", "b", "a"}, 2, 3}, {[]string{"b", "a"}, 0, 3}, {[]string{"b", "c"}, 1, 5}, {nil, 0, 5}} {
			n, err := s.ImportEntries(t.Context(), lines(c.names...), about)
			if err != nil || n != c.want {
				t.Fatalf("%d: imported %d, %v", i, n, err)
			}
			verified(t, s, c.entries)
		}
	})
}

// How far a sink is survives, and one that is not known begins at nothing.
func TestSinkPlaces(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		if got, err := s.SinkPlace(t.Context(), "siem"); err != nil || got != (store.SinkPlace{}) {
			t.Fatalf("%+v, %v", got, err)
		}
		for _, want := range []store.SinkPlace{{Seq: 4, Checkpoint: 2}, {Seq: 9, Checkpoint: 9, Missed: 1}} {
			if err := s.SaveSinkPlace(t.Context(), "siem", want); err != nil {
				t.Fatal(err)
			}
			if got, err := s.SinkPlace(t.Context(), "siem"); err != nil || got != want {
				t.Errorf("%+v, %v; want %+v", got, err, want)
			}
		}
	})
}

// A store is verified beside the agent that writes it, and nothing can be written
// that way.
func TestReaderBesideAnAgent(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		appendMany(t, s, 20)
		r, err := store.OpenReader(t.Context(), store.Config{DSN: p.dsn})
		if err != nil {
			t.Fatal(err)
		}
		defer closeStore(t, r)
		verified(t, r, 20)
		appendMany(t, s, 5)
		verified(t, r, 25)
		if err := r.AppendEntries(t.Context(), locksteward.Entry{Action: "forged"}); err == nil {
			t.Error("a reader wrote")
		}
		if err := r.SaveCheckpoint(t.Context(), store.SignedCheckpoint{Checkpoint: store.Checkpoint{Seq: 1, Hash: "x"}}); err == nil {
			t.Error("a reader wrote")
		}
		verified(t, s, 25)
		var pages int
		v, err := r.VerifyWith(t.Context(), store.VerifyOptions{Progress: func(done, all int64) {
			if pages++; done != 25 || all != 25 {
				t.Errorf("%d of %d", done, all)
			}
		}})
		if err != nil || v.Entries != 25 || v.Head.Seq != 25 || pages != 1 {
			t.Errorf("%+v, %v, %d pages", v, err, pages)
		}
	})
}

// A store that is missing or empty, or has a schema of another version, is refused.
func TestReaderRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	missing := filepath.Join(dir, "none.db")
	if _, err := store.OpenReader(t.Context(), store.Config{DSN: "sqlite:" + missing}); err == nil || !strings.Contains(err.Error(), "working directory") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file was made: %v", err)
	}
	path := filepath.Join(dir, "locksteward.db")
	s := openAt(t, "sqlite:"+path)
	for _, c := range []struct{ statement, says string }{
		{`UPDATE schema_version SET version = 999`, "the database has version 999 and this program needs 1"},
		{`DELETE FROM schema_version`, "it is empty"},
	} {
		if err := s.Exec(t.Context(), c.statement); err != nil {
			t.Fatal(err)
		}
		if _, err := store.OpenReader(t.Context(), store.Config{DSN: "sqlite:" + path}); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.statement, err)
		}
	}
}
