package console

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/signin"
)

// changes are the routes that change something, with a body that works.
var changes = map[string]string{
	"POST /api/v1/requests":              `{"target":"orders","key":"lock:order:42","reason":"stuck"}`,
	"POST /api/v1/requests/r1/approve":   `{"reason":"seen","evidence_hash":"sha256:e1"}`,
	"POST /api/v1/requests/r1/deny":      `{"reason":"no","evidence_hash":"sha256:e1"}`,
	"POST /api/v1/requests/r0/undo":      `{"reason":"wrong lock"}`,
	"POST /api/v1/requests/r0/lift":      `{"reason":"seen enough"}`,
	"POST /api/v1/requests/break-glass":  `{"target":"orders","key":"lock:order:42","reason":"INC-9"}`,
	"POST /api/v1/bundles":               `{"target":"orders","host":"app-7","reason":"gone"}`,
	"POST /api/v1/bundles/b1/approve":    `{"reason":"gone","evidence_hash":"sha256:b1"}`,
	"POST /api/v1/bundles/b1/deny":       `{"reason":"it is back"}`,
	"POST /api/v1/release/pause":         `{"scope":"all","reason":"INC-9"}`,
	"POST /api/v1/release/resume":        `{"scope":"all","reason":"INC-9"}`,
	"POST /api/v1/silences":              `{"matchers":["team=x"],"for_ms":60000,"reason":"migration"}`,
	"POST /api/v1/silences/sil_1/expire": "",
	"POST /-/reload":                     "",
	"POST /-/pause":                      "",
	"POST /-/resume":                     "",
}

var reads = []string{
	"/", "/api/v1/locks", "/api/v1/locks/one?target=orders&key=lock:order:42", "/api/v1/findings", "/api/v1/targets",
	"/api/v1/classes", "/api/v1/report", "/api/v1/requests", "/api/v1/requests/r1", "/api/v1/audit",
	"/api/v1/locks/events?target=orders&key=lock:order:42", "/api/v1/graph", "/api/v1/bundles/b1", "/api/v1/release/pause", "/api/v1/silences",
}

func basic(name, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(name+":"+password))
}

func TestWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	b := setup(t, "viewer", "requester", "approver", "admin", "break-glass")
	may := map[string]string{
		"POST /api/v1/requests": "requester", "POST /api/v1/requests/r1/approve": "approver",
		"POST /api/v1/requests/r1/deny": "approver", "POST /-/reload": "admin", "POST /-/pause": "admin", "POST /-/resume": "admin",
		"POST /api/v1/requests/r0/undo": "approver", "POST /api/v1/requests/r0/lift": "approver",
		"POST /api/v1/requests/break-glass": "break-glass", "POST /api/v1/bundles": "requester",
		"POST /api/v1/bundles/b1/approve": "approver", "POST /api/v1/bundles/b1/deny": "approver",
		"POST /api/v1/release/pause": "admin", "POST /api/v1/release/resume": "admin",
		"POST /api/v1/silences": "approver", "POST /api/v1/silences/sil_1/expire": "approver",
	}
	also := map[string]string{"POST /api/v1/silences": "admin", "POST /api/v1/silences/sil_1/expire": "admin"}
	for user := range b.tokens {
		for _, path := range reads {
			if a := b.do(user, "GET", path, ""); a.status != http.StatusOK {
				t.Errorf("%s: GET %s: status %d", user, path, a.status)
			}
		}
		for change, body := range changes {
			method, path, _ := strings.Cut(change, " ")
			a := b.do(user, method, path, body)
			switch {
			case may[change] == user || also[change] == user:
				if a.status != http.StatusOK && a.status != http.StatusCreated {
					t.Errorf("%s: %s: status %d: %s", user, change, a.status, a.body)
				}
			case a.status != http.StatusForbidden:
				t.Errorf("%s: %s: status %d", user, change, a.status)
			default:
				if p := a.problem(t); p.Code != api.CodeRefused || !strings.Contains(p.Detail, may[change]) {
					t.Errorf("%s: %s: %+v", user, change, p)
				}
			}
		}
	}
	if b.world.reloads != 1 || len(b.world.inputs) != 2 || len(b.world.words) != 5 || len(b.world.bundles) != 1 {
		t.Errorf("%d reloads, %d requests, %d decisions, %d bundles", b.world.reloads, len(b.world.inputs), len(b.world.words), len(b.world.bundles))
	}
}

func TestNobodyGetsInOnceThereAreUsers(t *testing.T) {
	t.Parallel()
	b := setupAs(t, func(c *signin.Config) { c.Lockout.Failures = 1000 }, "all")
	token := b.tokens["all"]
	for name, authorization := range map[string]string{
		"nothing": "", "wrong": "Bearer lsu_wrong", "empty": "Bearer ", "bare": token, "other scheme": "Digest " + token,
		"wrong basic": basic("all", "lsu_wrong"), "other name": basic("eve", token),
	} {
		for _, path := range reads {
			a := b.do("", "GET", path, "", header("Authorization", authorization))
			switch {
			case path == "/" && name == "nothing":
				// People are led to the form; the test's client goes there.
				if a.status != http.StatusOK || !strings.Contains(a.body, `action="/sign-in"`) {
					t.Errorf("%s: GET %s: status %d", name, path, a.status)
				}
				continue
			case path == "/":
				if a.status != http.StatusUnauthorized || !strings.Contains(a.body, "unknown API token") || strings.Contains(a.body, "lock:order") {
					t.Errorf("%s: GET %s: status %d", name, path, a.status)
				}
			case a.status != http.StatusUnauthorized || a.problem(t).Code != api.CodeUnauthenticated:
				t.Errorf("%s: GET %s: status %d", name, path, a.status)
			}
			// No page makes the browser's own dialogue pop up.
			if strings.Contains(strings.Join(a.head.Values("WWW-Authenticate"), ","), "Basic") {
				t.Errorf("%s: GET %s offers Basic", name, path)
			}
		}
	}
	if a := b.do("", "GET", "/", "", header("Authorization", basic("all", token))); a.status != http.StatusOK || !strings.Contains(a.body, "signed in as </span><b>all</b>") {
		t.Errorf("a browser's sign-in: status %d", a.status)
	}
	// A browser sends Basic by itself, so it must not change anything.
	for change, body := range changes {
		method, path, _ := strings.Cut(change, " ")
		for _, authorization := range []string{"", "Bearer lsu_wrong", basic("all", token)} {
			if a := b.do("", method, path, body, header("Authorization", authorization)); a.status != http.StatusUnauthorized {
				t.Errorf("%q: %s: status %d", authorization, change, a.status)
			}
		}
	}
	if b.world.reloads+len(b.world.actors) != 0 {
		t.Error("somebody unknown changed something")
	}
	for _, e := range b.logs.All() {
		if line := fmt.Sprint(e.Message, e.ContextMap()); strings.Contains(line, token) || strings.Contains(line, "lsu_") {
			t.Errorf("the log shows a token: %s", line)
		}
	}
	if b.logs.FilterMessage("console request").Len() == 0 {
		t.Error("requests are not logged")
	}
}

func TestWithoutUsersAllIsReadAndNothingChanged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, path := range reads {
		if a := b.do("", "GET", path, ""); a.status != http.StatusOK {
			t.Errorf("GET %s: status %d", path, a.status)
		}
	}
	for change, body := range changes {
		method, path, _ := strings.Cut(change, " ")
		a := b.do("", method, path, body)
		if p := a.problem(t); p.Status != http.StatusForbidden || !strings.Contains(p.Detail, "locksteward users add") {
			t.Errorf("%s: %+v", change, p)
		}
	}
	if b.world.reloads+len(b.world.actors) != 0 {
		t.Error("something was changed")
	}
}

// A web page that rebinds its own name to 127.0.0.1 must not read the locks.
func TestWithoutUsersTheHostMustBeLoopback(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for host, want := range map[string]int{
		"localhost": 200, "LOCALHOST:10122": 200, "console.localhost": 200, "127.0.0.1": 200, "127.0.0.9:1": 200, "[::1]:10122": 200, "[::1]": 200,
		"evil.example": 421, "evil.example:10122": 421, "127.0.0.1.evil.example": 421, "10.0.0.1": 421, "localhost.evil.example": 421, "0.0.0.0": 421,
	} {
		a := b.do("", "GET", "/api/v1/locks", "", func(r *http.Request) { r.Host = host })
		if a.status != want {
			t.Errorf("Host %s: status %d, want %d", host, a.status, want)
		}
	}
}

func TestOtherSitesChangeNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, "all")
	const body = `{"target":"orders","key":"lock:order:42","reason":"stuck"}`
	for name, edits := range map[string][]func(*http.Request){
		"fetch metadata": {header("Sec-Fetch-Site", "cross-site")},
		"same site":      {header("Sec-Fetch-Site", "same-site")},
		"origin":         {header("Origin", "https://evil.example")},
		"null origin":    {header("Origin", "null")},
	} {
		a := b.do("all", "POST", "/api/v1/requests", body, edits...)
		if p := a.problem(t); p.Status != http.StatusForbidden {
			t.Errorf("%s: %+v", name, p)
		}
	}
	// What an HTML form can send.
	for _, mediaType := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"} {
		a := b.do("all", "POST", "/api/v1/requests", body, header("Content-Type", mediaType))
		if p := a.problem(t); p.Status != http.StatusUnsupportedMediaType {
			t.Errorf("%q: %+v", mediaType, p)
		}
	}
	if len(b.world.actors) != 0 {
		t.Error("another site changed something")
	}
	if a := b.do("all", "POST", "/api/v1/requests", body, header("Origin", b.url), header("Sec-Fetch-Site", "same-origin"), header("Content-Type", "application/json; charset=utf-8")); a.status != http.StatusCreated {
		t.Errorf("the same origin: status %d: %s", a.status, a.body)
	}
}

func TestReloadUsersSwapsOrKeeps(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if a := b.do("", "GET", "/api/v1/locks", ""); a.status != http.StatusOK {
		t.Fatalf("status %d", a.status)
	}
	b.addUser("viewer")
	if err := b.server.ReloadUsers(); err != nil {
		t.Fatal(err)
	}
	if a := b.do("", "GET", "/api/v1/locks", ""); a.status != http.StatusUnauthorized {
		t.Errorf("status %d after the reload", a.status)
	}
	b.server.cfg.UsersFile = write(t, "broken.yaml", "users: 7\n")
	if err := b.server.ReloadUsers(); err == nil || !strings.Contains(err.Error(), "users_file") {
		t.Errorf("got %v", err)
	}
	if a := b.do("viewer", "GET", "/api/v1/locks", ""); a.status != http.StatusOK {
		t.Errorf("status %d after a bad reload", a.status)
	}
}

// A users file that was emptied, or is gone, must not open the console.
func TestReloadUsersDoesNotOpenTheConsole(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.addUser("viewer")
	if err := b.server.ReloadUsers(); err != nil {
		t.Fatal(err)
	}
	for what, file := range map[string]string{
		"empty":    write(t, "empty.yaml", ""),
		"no users": write(t, "none.yaml", "users: []\n"),
		"gone":     filepath.Join(t.TempDir(), "gone.yaml"),
	} {
		b.server.cfg.UsersFile = file
		if err := b.server.ReloadUsers(); err == nil || !strings.Contains(err.Error(), "has no users any more") {
			t.Errorf("%s: got %v", what, err)
		}
		if a := b.do("", "GET", "/api/v1/locks", ""); a.status != http.StatusUnauthorized {
			t.Errorf("%s: nobody gets status %d", what, a.status)
		}
		if a := b.do("viewer", "GET", "/api/v1/locks", ""); a.status != http.StatusOK {
			t.Errorf("%s: the user gets status %d", what, a.status)
		}
	}
}
