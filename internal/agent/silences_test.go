package agent_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/store"
)

// fired waits until a finding of a key fires, and returns it.
func (b *bed) fired(key string) (out api.ListedFinding) {
	b.t.Helper()
	testredis.Eventually(b.t, within, func() bool {
		list, err := b.bo.Findings(b.t.Context(), apiclient.FindingsQuery{Rule: "ttl/none", Status: "firing"})
		for _, f := range list.Findings {
			if f.Key.Key == key {
				out = f
			}
		}
		return err == nil && out.Key.Key == key
	}, key+" does not fire")
	return out
}

// held waits until so many events are held back.
func held(t *testing.T, st *store.Store, want int64) {
	t.Helper()
	testredis.Eventually(t, within, func() bool {
		waiting, err := st.Backlogs(t.Context())
		var n int64
		for _, p := range waiting {
			n += p.Held
		}
		return err == nil && n == want
	}, "not as many events are held back")
}

// silence adds a silence in the name of bo.
func (b *bed) silence(in api.AddSilence) api.Silence {
	b.t.Helper()
	s, err := b.bo.AddSilence(b.t.Context(), in)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// trailOf is what the audit trail has of silences, newest first.
func (b *bed) trailOf() string {
	b.t.Helper()
	list, err := b.bo.Audit(b.t.Context(), 100)
	if err != nil {
		b.t.Fatal(err)
	}
	var actions []string
	for _, entry := range list.Entries {
		if strings.HasPrefix(entry.Action, "silence.") || entry.Action == "finding.accept" {
			actions = append(actions, entry.Actor+" "+entry.Action+" "+entry.Reason)
		}
	}
	return strings.Join(actions, ", ")
}

// What is silenced is seen and not reported, over a restart too. Ended, what still fires
// is reported, and what ended meanwhile never is.
func TestSilences(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	e := newEar(t)
	pg := testpg.Start(t)
	b := newBedOn(t, target(srv.URL())+orders+receivers("ops", e.url), pg.DSN())
	other, err := store.Open(t.Context(), pg.DSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })

	one := b.silence(api.AddSilence{Matchers: []string{"key=~lock:order:[12]"}, ForMs: time.Hour.Milliseconds(), Reason: "rebuilt"})
	if one.State != api.SilenceActive || one.CreatedBy != "bo" || one.Findings != 0 || time.Until(one.EndsAt) > time.Hour {
		t.Errorf("%+v", one)
	}
	set(t, rdb, "lock:order:1", token, 0)
	set(t, rdb, "lock:order:2", token, 0)
	b.fired("lock:order:1")
	if f := b.fired("lock:order:2"); f.SilencedBy != one.ID || !f.SilencedUntil.Equal(one.EndsAt) || !f.AcceptedUntil.IsZero() {
		t.Errorf("%+v", f)
	}
	held(t, other, 2)
	rdb.Del(t.Context(), "lock:order:2")
	held(t, other, 1) // the end takes the beginning away: nobody was notified of it
	b.stop()
	b.start()
	set(t, rdb, "lock:order:3", token, 0)
	if got := e.await(1); got[0].finding() != "lock:order:3 firing" {
		t.Errorf("reported %s", got[0].finding())
	}
	if list, err := b.ana.Silences(t.Context(), false); err != nil || len(list.Silences) != 1 || list.Silences[0].Findings != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	if over, err := b.bo.ExpireSilence(t.Context(), one.ID); err != nil || over.State != api.SilenceOver || over.EndedBy != "bo" || over.EndedAt.IsZero() {
		t.Errorf("%+v, %v", over, err)
	}
	if got := e.await(2); got[1].finding() != "lock:order:1 firing" {
		t.Errorf("reported %s", got[1].finding())
	}
	if got, want := b.trailOf(), "bo silence.end , bo silence.add rebuilt"; got != want {
		t.Errorf("the trail has %s\nwant %s", got, want)
	}

	// What cannot be.
	for want, in := range map[string]api.AddSilence{
		"no finding has the fingerprint": {Fingerprint: "00", ForMs: 1000, Reason: "c"},
		"would silence everything":       {Matchers: []string{"team!=x"}, ForMs: 1000, Reason: "c"},
		"did you mean class?":            {Matchers: []string{"clas=x"}, ForMs: 1000, Reason: "c"},
	} {
		if _, err := b.bo.AddSilence(t.Context(), in); !errors.Is(err, locksteward.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := b.ana.AddSilence(t.Context(), api.AddSilence{Matchers: []string{"team=x"}, ForMs: 1000, Reason: "c"}); !errors.Is(err, locksteward.ErrRefused) {
		t.Errorf("a requester silences: %v", err)
	}
}

// A finding that was reported and is accepted, a silence that is over by itself, and one
// that another process ended.
func TestSilencesThatEnd(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	e := newEar(t)
	pg := testpg.Start(t)
	b := newBedOn(t, target(srv.URL())+orders+receivers("ops", e.url), pg.DSN())
	other, err := store.Open(t.Context(), pg.DSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	short := b.silence(api.AddSilence{Matchers: []string{"key=lock:order:5"}, ForMs: 6000, Reason: "soon over"})
	far := b.silence(api.AddSilence{Matchers: []string{"key=lock:order:6"}, ForMs: time.Hour.Milliseconds(), Reason: "by the other"})
	for _, key := range []string{"lock:order:4", "lock:order:5", "lock:order:6"} {
		set(t, rdb, key, token, 0)
	}
	if got := e.await(1); got[0].finding() != "lock:order:4 firing" {
		t.Errorf("reported %s", got[0].finding())
	}
	f := b.fired("lock:order:4")
	accepted := b.silence(api.AddSilence{Fingerprint: f.Fingerprint, Until: time.Now().Add(time.Hour), Reason: "known"})
	if f = b.fired("lock:order:4"); f.SilencedBy != accepted.ID || !f.AcceptedUntil.Equal(accepted.EndsAt) || accepted.Matchers[0] != "fingerprint="+f.Fingerprint {
		t.Errorf("%+v", f)
	}
	rdb.Del(t.Context(), "lock:order:4")
	b.fired("lock:order:6")
	if err := other.EndSilence(t.Context(), far.ID, "other"); err != nil {
		t.Fatal(err)
	}
	reported := map[string]time.Time{}
	for _, h := range e.await(4) {
		reported[h.finding()] = h.at
	}
	for _, want := range []string{"lock:order:4 firing", "lock:order:4 resolved", "lock:order:5 firing", "lock:order:6 firing"} {
		if _, ok := reported[want]; !ok {
			t.Errorf("not reported: %s; reported were %v", want, reported)
		}
	}
	if early := short.EndsAt.Sub(reported["lock:order:5 firing"]); early > 0 {
		t.Errorf("reported %s before the silence ended", early)
	}
	if got, want := b.trailOf(), "bo finding.accept known, bo silence.add by the other, bo silence.add soon over"; got != want {
		t.Errorf("the trail has %s\nwant %s", got, want)
	}
}
