package store_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/store"
)

func aSession(digest string, at time.Time) store.Session {
	return store.Session{
		Digest: digest, User: "ana", Source: "oidc", Stamp: "s", Roles: []string{"viewer", "approver"}, Teams: []string{"checkout"},
		Created: at, Seen: at, Expires: at.Add(12 * time.Hour),
	}
}

// A session outlives the process, is prolonged and never shortened, and ends once.
func TestSessions(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		at := time.Date(2026, 3, 1, 12, 0, 0, 5000, time.UTC)
		want := aSession("d1", at)
		if err := s.SaveSession(t.Context(), want, locksteward.Entry{Actor: "ana", Action: "signin.ok"}); err != nil {
			t.Fatal(err)
		}
		if err := s.SaveSession(t.Context(), want, locksteward.Entry{Actor: "ana", Action: "signin.ok"}); err == nil {
			t.Error("one digest is two sessions")
		}
		plain := store.Session{Digest: "d2", User: "bo\x00\xff", Created: at, Seen: at, Expires: at.Add(time.Hour)}
		if err := s.SaveSession(t.Context(), plain); err != nil {
			t.Fatal(err)
		}
		closeStore(t, s)
		s = p.open(t)
		if got, err := s.LoadSession(t.Context(), "d1"); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
		if got, err := s.LoadSession(t.Context(), "d2"); err != nil || got.User != "bo\ufffd\ufffd" || got.Roles != nil {
			t.Errorf("got %+v, %v", got, err)
		}
		for _, seen := range []time.Time{at.Add(time.Minute), at.Add(time.Second)} {
			if err := s.TouchSession(t.Context(), "d1", seen); err != nil {
				t.Fatal(err)
			}
		}
		if got, _ := s.LoadSession(t.Context(), "d1"); !got.Seen.Equal(at.Add(time.Minute)) {
			t.Errorf("seen at %s", got.Seen)
		}
		for range 2 { // the second time there is nothing to end, and nothing to tell
			if err := s.EndSession(t.Context(), "d1", locksteward.Entry{Actor: "ana", Action: "signout"}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.LoadSession(t.Context(), "d1"); !errors.Is(err, locksteward.ErrNotFound) {
			t.Errorf("after its end: %v", err)
		}
		if err := s.TouchSession(t.Context(), "d1", at.Add(time.Hour)); err != nil {
			t.Error(err)
		}
		verified(t, s, 2)
	})
}

func TestOldSessionsAreForgotten(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		for i := range 5 {
			n := aSession(fmt.Sprintf("d%d", i), at)
			n.Expires, n.Seen = at.Add(time.Duration(i)*time.Hour), at
			if i == 4 {
				n.Seen = at.Add(-2 * time.Hour)
			}
			if err := s.SaveSession(t.Context(), n); err != nil {
				t.Fatal(err)
			}
		}
		n, err := s.PruneSessions(t.Context(), at.Add(90*time.Minute), at.Add(-time.Hour))
		if err != nil || n != 3 { // two expired, one idle
			t.Errorf("forgot %d, %v", n, err)
		}
		if _, err := s.LoadSession(t.Context(), "d2"); err != nil {
			t.Error(err)
		}
	})
}
