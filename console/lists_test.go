package console

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

// nextOf is where the Link header leads.
func nextOf(t *testing.T, a answer) string {
	t.Helper()
	link := a.head.Get("Link")
	path, rel, _ := strings.Cut(strings.TrimPrefix(link, "<"), ">")
	if link != "" && rel != `; rel="next"` {
		t.Errorf("Link is %q", link)
	}
	return path
}

// The pages of each list, by cursor and by Link alike, are the list; what comes or
// goes on pages that were seen does not matter.
func TestListsComeInPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var locks, requests []string
	b.world.locks, b.world.requests, b.world.findings = nil, nil, nil
	for i := range 7 {
		key := fmt.Sprintf("lock:\xff%d<", i)
		l := aLock(key, time.Duration(i%3)*time.Minute)
		b.world.locks = append(b.world.locks, l)
		locks = append(locks, api.NewKey(key).Key)
		f := aFinding(key)
		f.Since = at.Add(time.Duration(i) * time.Second)
		b.world.findings = append(b.world.findings, f)
		r := pending()
		r.ID, r.CreatedAt = fmt.Sprintf("r%d", i), at.Add(-time.Duration(i/2)*time.Second)
		b.world.requests = append(b.world.requests, r)
		requests = append(requests, r.ID)
	}
	byAge := slices.Concat([]string{}, locks[2:3], locks[5:6], locks[1:2], locks[4:5], locks[0:1], locks[3:4], locks[6:7])
	for path, want := range map[string][]string{
		"/api/v1/locks?limit=2": locks, "/api/v1/locks?limit=3&sort=age": byAge, "/api/v1/locks?limit=7&sort=ttl": locks,
		"/api/v1/findings?limit=3": locks, "/api/v1/requests?limit=2": requests, "/api/v1/requests?limit=1&state=open": requests,
	} {
		var got []string
		for next, pages := path, 0; next != ""; pages++ {
			if pages > len(want) {
				t.Fatalf("%s: no end", path)
			}
			a := b.do("", "GET", next, "")
			var cursor string
			switch {
			case strings.Contains(path, "/locks"):
				list := get[api.LockList](b, "", next)
				for _, l := range list.Locks {
					got = append(got, l.Key.Key)
				}
				if cursor = list.Next; list.Total != 7 {
					t.Errorf("%s: total %d", next, list.Total)
				}
			case strings.Contains(path, "/findings"):
				list := get[api.FindingList](b, "", next)
				for _, f := range list.Findings {
					got = append(got, f.Key.Key)
				}
				cursor = list.Next
			default:
				list := get[api.RequestList](b, "", next)
				for _, r := range list.Requests {
					got = append(got, r.ID)
				}
				cursor = list.Next
			}
			next = nextOf(t, a)
			if u, err := url.Parse(next); err != nil || u.Query().Get("cursor") != cursor {
				t.Errorf("%s: Link leads to %q, the cursor is %q", path, next, cursor)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}

// A cursor that this list did not give is an error, not a list that looks whole.
func TestForeignCursorsAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	of := func(v any) string { return encodeCursor(v) }
	for name, path := range map[string]string{
		"noise": "/api/v1/locks?cursor=%21", "no json": "/api/v1/locks?cursor=" + base64.RawURLEncoding.EncodeToString([]byte("x")),
		"another list": "/api/v1/locks?cursor=" + of(requestCursor{At: at, ID: "r1"}), "another sort": "/api/v1/locks?sort=age&cursor=" + of(lockCursor{Sort: "key", Target: "orders"}),
		"a lock's": "/api/v1/requests?cursor=" + of(lockCursor{Sort: "key"}), "a lock's for findings": "/api/v1/findings?cursor=" + of(lockCursor{Sort: "key", Target: "orders"}),
		"since": "/api/v1/requests?since=yesterday", "two keys": "/api/v1/requests?key=a&key_b64=Yg==", "match": "/api/v1/locks?match=[",
	} {
		if p := b.do("", "GET", path, "").problem(t); p.Status != http.StatusBadRequest || len(p.Detail) < 20 {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// A cursor fits into a URL, however long the key is.
func TestCursorOfALongKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.world.locks = []locksteward.Lock{aLock("lock:a", 0), aLock("lock:"+strings.Repeat("x", 1<<20), 0), aLock("lock:y", 0)}
	second := nextOf(t, b.do("", "GET", nextOf(t, b.do("", "GET", "/api/v1/locks?limit=1", "")), ""))
	if list := get[api.LockList](b, "", second); len(list.Locks) != 1 || list.Locks[0].Key.Key != "lock:y" || list.Next != "" {
		t.Errorf("behind a long key: %d locks, next %q", len(list.Locks), list.Next)
	}
}

func TestAnswersHaveTags(t *testing.T) {
	t.Parallel()
	b := setup(t, "all")
	for _, path := range reads[1:] {
		if path == "/api/v1/report" {
			continue // its end is now
		}
		a := b.do("all", "GET", path, "")
		tag := a.head.Get("ETag")
		if !strings.HasPrefix(tag, `"`) || a.head.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: ETag %q, Cache-Control %q", path, tag, a.head.Get("Cache-Control"))
		}
		for _, match := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
			if again := b.do("all", "GET", path, "", header("If-None-Match", match)); again.status != http.StatusNotModified || again.body != "" || again.head.Get("ETag") != tag {
				t.Errorf("%s, If-None-Match %s: status %d, %q", path, match, again.status, again.body)
			}
		}
		if again := b.do("all", "GET", path, "", header("If-None-Match", `"other"`)); again.status != http.StatusOK || again.body != a.body {
			t.Errorf("%s: status %d", path, again.status)
		}
		if head := b.do("all", "HEAD", path, ""); head.status != http.StatusOK || head.head.Get("ETag") != tag {
			t.Errorf("HEAD %s: status %d, ETag %q", path, head.status, head.head.Get("ETag"))
		}
		// A tag opens nothing.
		if nobody := b.do("", "GET", path, "", header("If-None-Match", tag)); nobody.status != http.StatusUnauthorized {
			t.Errorf("%s with a tag and no token: status %d", path, nobody.status)
		}
	}
	a := b.do("all", "GET", "/api/v1/locks", "")
	b.world.locks = b.world.locks[:1]
	if again := b.do("all", "GET", "/api/v1/locks", "", header("If-None-Match", a.head.Get("ETag"))); again.status != http.StatusOK || again.head.Get("ETag") == a.head.Get("ETag") {
		t.Errorf("after a change: status %d, ETag %q", again.status, again.head.Get("ETag"))
	}
	if done := b.do("all", "POST", "/api/v1/requests/preview", changes["POST /api/v1/requests"]); done.head.Get("ETag") != "" {
		t.Error("an answer to a POST has a tag")
	}
}

// What was decided in part is an answer with the outcomes, not an error that hides
// them.
func TestABundleDecidedInPart(t *testing.T) {
	t.Parallel()
	b := setup(t, "all")
	b.world.partly = fmt.Errorf("%w: request b1.2 was decided by somebody else", locksteward.ErrConflict)
	a := b.do("all", "POST", "/api/v1/bundles/b1/approve", changes["POST /api/v1/bundles/b1/approve"])
	if a.status != http.StatusOK || !strings.Contains(a.body, "b1.2 was decided by somebody else") || !strings.Contains(a.body, `"state":"released"`) {
		t.Errorf("status %d: %s", a.status, a.body)
	}
	b.world.partly = errors.New("dial tcp 10.0.0.1: password hunter2")
	if a := b.do("all", "POST", "/api/v1/bundles/b1/deny", changes["POST /api/v1/bundles/b1/deny"]); strings.Contains(a.body, "hunter2") {
		t.Errorf("an inner error is reported: %s", a.body)
	}
}

// Keys of a bundle are exact, and none at all is not the same as an empty list.
func TestBundleKeysReachTheService(t *testing.T) {
	t.Parallel()
	b := setup(t, "all")
	for _, body := range []string{
		`{"target":"orders","host":"app-7","keys":[{"key":"lock:a"},{"key":"lock:\\xff","key_b64":"bG9jazr/"}],"reason":"r"}`,
		`{"target":"orders","host":"app-7","keys":[],"reason":"r"}`, `{"target":"orders","host":"app-7","reason":"r"}`,
	} {
		if a := b.do("all", "POST", "/api/v1/bundles", body); a.status != http.StatusCreated || a.head.Get("Location") != "/api/v1/bundles/b1" {
			t.Fatalf("status %d: %s", a.status, a.body)
		}
	}
	got := b.world.bundles
	if !slices.Equal(got[0].Keys, []string{"lock:a", "lock:\xff"}) || got[0].Host != "app-7" || got[1].Keys == nil || len(got[1].Keys) != 0 || got[2].Keys != nil {
		t.Errorf("got %+v", got)
	}
}

// An age is that of now, by the server's clock, in the list as on the page: a lock that
// was looked at five minutes ago is five minutes older.
func TestAgesGoOnAfterTheLook(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.world.locks = []locksteward.Lock{aLock("lock:order:42", time.Minute)}
	b.world.now = at.Add(5 * time.Minute)
	if a := b.do("", "GET", "/api/v1/locks", ""); !strings.Contains(a.body, `"age_ms":360000,`) {
		t.Errorf("GET /api/v1/locks: %s", a.body)
	}
	if a := b.do("", "GET", "/locks", ""); !strings.Contains(a.body, "≥ 6m") {
		t.Errorf("GET /locks: %s", a.body)
	}
}

// What a client of Redis wrote turns no line of anyone who reads an answer.
func TestAnswersHaveNoHiddenCharacters(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := aLock("lock:\u009b2J\u202egnp", time.Minute)
	l.Holder.App = "app\u2066\u0085"
	b.world.locks = []locksteward.Lock{l}
	a := b.do("", "GET", "/api/v1/locks", "")
	if strings.ContainsAny(a.body, "\u009b\u202e\u2066\u0085") || !strings.Contains(a.body, `lock:\u009b2J\u202egnp`) {
		t.Errorf("got %q", a.body)
	}
}
