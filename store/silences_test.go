package store_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/store"
)

func aSilence(id string) store.Silence {
	at := time.Now().Truncate(time.Microsecond).UTC()
	return store.Silence{
		ID: id, Matchers: []string{`team=checkout`, "key=lock:\x01"}, Reason: "rebuild", CreatedBy: "ana",
		CreatedAt: at, StartsAt: at, EndsAt: at.Add(time.Hour), Fingerprint: "f1",
	}
}

// The life of silences: each change is on the trail, and wakes what was held back.
func TestSilences(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		writeEvents(t, s, fires("e1", "lock:a"))
		hold := func(g locksteward.DueGroup) (locksteward.FlushedGroup, []locksteward.Notification) {
			return locksteward.FlushedGroup{Group: g.Group, Held: map[int64]string{g.Waiting[0].Seq: "silence"}, Next: time.Hour}, nil
		}
		flushed(t, s, "ops", 10, hold)
		woken := func(when string) {
			t.Helper()
			if wait, ok, err := s.NextGroup(t.Context(), "ops", ""); err != nil || !ok || wait != 0 {
				t.Errorf("%s: due in %s, %t, %v", when, wait, ok, err)
			}
			flushed(t, s, "ops", 10, hold)
		}
		one, later, over := aSilence("s1"), aSilence("s2"), aSilence("s3")
		later.StartsAt, later.CreatedAt = later.StartsAt.Add(30*time.Minute), later.CreatedAt.Add(time.Second)
		over.EndsAt, over.CreatedAt = over.EndsAt.Add(-2*time.Hour), over.CreatedAt.Add(-time.Second)
		for _, silence := range []store.Silence{one, later, over} {
			if err := s.AddSilence(t.Context(), silence, locksteward.Entry{Action: "silence.add", Subject: silence.ID}); err != nil {
				t.Fatal(err)
			}
			woken("added " + silence.ID)
		}
		if err := s.AddSilence(t.Context(), one); err == nil {
			t.Error("added twice")
		}
		if err := s.AddSilence(t.Context(), store.Silence{}); err == nil {
			t.Error("added without an id")
		}
		got, err := s.Silences(t.Context(), false)
		if err != nil || !reflect.DeepEqual(got, []store.Silence{later, one}) {
			t.Errorf("%+v, %v", got, err)
		}
		if err := s.EndSilence(t.Context(), "s1", "bo", locksteward.Entry{Action: "silence.end", Subject: "s1"}); err != nil {
			t.Fatal(err)
		}
		woken("ended")
		for id, want := range map[string]error{"s1": locksteward.ErrConflict, "s3": locksteward.ErrConflict, "none": locksteward.ErrNotFound} {
			if err := s.EndSilence(t.Context(), id, "bo", locksteward.Entry{Action: "lost"}); !errors.Is(err, want) {
				t.Errorf("%s: %v", id, err)
			}
		}
		if got, err = s.Silences(t.Context(), false); err != nil || len(got) != 1 || got[0].ID != "s2" {
			t.Errorf("%+v, %v", got, err)
		}
		if got, err = s.Silences(t.Context(), true); err != nil || len(got) != 3 || got[1].EndedBy != "bo" || got[1].EndedAt.IsZero() || got[2].ID != "s3" {
			t.Errorf("%+v, %v", got, err)
		}
		if n, err := s.PruneSilences(t.Context(), time.Now()); err != nil || n != 1 {
			t.Errorf("pruned %d, %v", n, err)
		}
		verified(t, s, 4)
	})
}
