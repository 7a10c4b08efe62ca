package targets

import (
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/catalogue"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/rules"
)

// The findings on a lock that a request released say which; those on the next hold of
// the key do not, nor where the execution released nothing.
func TestResolvedByRequest(t *testing.T) {
	t.Parallel()
	var l Executions
	now := time.Now()
	r := locksteward.Request{ID: "r-7", Evidence: locksteward.Evidence{Target: "redis", Key: "lock:a"}}
	resolved := func(since time.Time, how locksteward.EndedHow) locksteward.Finding {
		e, err := rules.New(nil, &class.Set{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		lock := locksteward.Lock{Observation: locksteward.Observation{
			Target: "redis", Key: "lock:a", Type: "string", Kind: locksteward.KindLock, TTL: locksteward.NoExpiry, ExpireAt: locksteward.NoExpireAt, At: since, TokenDigest: "d",
		}}
		e.EvaluateDirect(locksteward.Update{Target: "redis", At: since, Locks: []locksteward.Lock{lock}})
		lock.At = since.Add(time.Minute)
		e.EvaluateDirect(locksteward.Update{Target: "redis", At: lock.At, Locks: []locksteward.Lock{lock}})
		reported := e.EvaluateDirect(locksteward.Update{Target: "redis", At: lock.At, Endings: []locksteward.Ending{{Lock: lock, How: how, At: lock.At.Add(time.Second)}}})
		if len(reported) != 1 {
			t.Fatalf("reported %+v", reported)
		}
		l.explain(reported, now)
		return reported[0].Finding
	}
	before := now.Add(-time.Hour)
	if f := resolved(before, locksteward.EndedReleased); strings.Contains(catalogue.Text("en", f.Resolution), "request") {
		t.Errorf("nobody asked: %q", catalogue.Text("en", f.Resolution))
	}
	l.begin(r, now)
	for _, how := range []locksteward.EndedHow{locksteward.EndedReleased, locksteward.EndedDeleted, locksteward.EndedReplaced} {
		if f := resolved(before, how); !strings.Contains(catalogue.Text("en", f.Resolution), "by request r-7") || !strings.Contains(catalogue.Text("zh", f.Resolution), "r-7") {
			t.Errorf("%s: %+v", how, f.Resolution)
		}
	}
	if f := resolved(before, locksteward.EndedExpired); strings.Contains(catalogue.Text("en", f.Resolution), "request") {
		t.Errorf("expired: %q", catalogue.Text("en", f.Resolution))
	}
	if f := resolved(now.Add(time.Second), locksteward.EndedReleased); strings.Contains(catalogue.Text("en", f.Resolution), "request") {
		t.Errorf("the next hold: %q", catalogue.Text("en", f.Resolution))
	}
	l.end(r)
	if f := resolved(before, locksteward.EndedReleased); strings.Contains(catalogue.Text("en", f.Resolution), "request") {
		t.Errorf("released nothing: %q", catalogue.Text("en", f.Resolution))
	}
}
