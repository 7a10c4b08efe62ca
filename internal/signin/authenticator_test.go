package signin

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/users"
)

func basic(name, password string) string {
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(name+":"+password))
}

func TestWaysToSayWhoAsks(t *testing.T) {
	t.Parallel()
	b := newFixture(t, func(c *Config) {
		c.Proxy = &ProxyConfig{Allow: []string{"10.0.0.5", "10.1.0.0/16"}, Header: "X-Remote-User"}
	})
	cookie, err := b.signIn("192.0.2.1", "bo", password)
	if err != nil {
		t.Fatal(err)
	}
	post := get("192.0.2.1", basic("ann", password))
	post.Method = http.MethodPost
	for name, c := range map[string]struct {
		request *http.Request
		cookie  *http.Cookie
		want    string
		err     error
	}{
		"nothing":                   {get("192.0.2.1"), nil, "", ErrNobody},
		"token":                     {get("192.0.2.1", "Authorization: Bearer lsu_ann"), nil, "ann token", nil},
		"token in another case":     {get("192.0.2.1", "Authorization: bEARER  lsu_ann "), nil, "ann token", nil},
		"wrong token":               {get("192.0.2.1", "Authorization: Bearer lsu_nobody"), nil, "", ErrUnknown},
		"token of a disabled user":  {get("192.0.2.1", "Authorization: Bearer lsu_off"), nil, "", ErrUnknown},
		"wrong token and a cookie":  {get("192.0.2.1", "Authorization: Bearer lsu_nobody"), cookie, "", ErrUnknown},
		"token and another cookie":  {get("192.0.2.1", "Authorization: Bearer lsu_ann"), cookie, "ann token", nil},
		"cookie":                    {get("192.0.2.9"), cookie, "bo session", nil},
		"cookie and nginx's basic":  {get("192.0.2.9", basic("nginx", "pass")), cookie, "bo session", nil},
		"basic":                     {get("192.0.2.1", basic("ann", password)), nil, "ann basic", nil},
		"basic with a token":        {get("192.0.2.1", basic("ann", "lsu_ann")), nil, "ann basic", nil},
		"wrong basic":               {get("192.0.2.1", basic("ann", "wrong")), nil, "", ErrUnknown},
		"basic of a disabled user":  {get("192.0.2.1", basic("off", password)), nil, "", ErrUnknown},
		"basic does not change":     {post, nil, "", ErrUnknown},
		"another scheme":            {get("192.0.2.1", "Authorization: Digest lsu_ann"), nil, "", ErrUnknown},
		"a cookie of nobody":        {get("192.0.2.1"), &http.Cookie{Name: cookieName, Value: strings.Repeat("A", 43)}, "", ErrNobody},
		"no cookie of ours":         {get("192.0.2.1"), &http.Cookie{Name: cookieName, Value: "x"}, "", ErrNobody},
		"proxy":                     {get("10.0.0.5", "X-Remote-User: ext"), nil, "ext proxy", nil},
		"proxy network":             {get("10.1.2.3", "X-Remote-User: ext"), nil, "ext proxy", nil},
		"proxy, mapped address":     {get("::ffff:10.0.0.5", "X-Remote-User: ext"), nil, "ext proxy", nil},
		"proxy, another case":       {get("10.0.0.5", "X-Remote-User: EXT"), nil, "ext proxy", nil},
		"proxy and a token":         {get("10.0.0.5", "X-Remote-User: ext", "Authorization: Bearer lsu_ann"), nil, "ann token", nil},
		"proxy and its own basic":   {get("10.0.0.5", "X-Remote-User: ext", basic("ext", "nginx")), nil, "ext proxy", nil},
		"proxy without a name":      {get("10.0.0.5", "X-Remote-User: "), nil, "", ErrNobody},
		"proxy names nobody":        {get("10.0.0.5", "X-Remote-User: eve"), nil, "", ErrUnknown},
		"proxy names one of ours":   {get("10.0.0.5", "X-Remote-User: ann"), nil, "", ErrUnknown},
		"proxy names two":           {get("10.0.0.5", "X-Remote-User: ext", "X-Remote-User: ext"), nil, "", ErrForged},
		"forged":                    {get("192.0.2.1", "X-Remote-User: ext"), nil, "", ErrForged},
		"forged from loopback":      {get("127.0.0.1", "X-Remote-User: ext"), nil, "", ErrForged},
		"forged, with a token":      {get("192.0.2.1", "X-Remote-User: ext", "Authorization: Bearer lsu_ann"), nil, "", ErrForged},
		"forged, empty":             {get("192.0.2.1", "X-Remote-User: "), nil, "", ErrForged},
		"forged, said to be passed": {get("192.0.2.1", "X-Remote-User: ext", "X-Forwarded-For: 10.0.0.5"), nil, "", ErrForged},
	} {
		var cookies []*http.Cookie
		if c.cookie != nil {
			cookies = append(cookies, c.cookie)
		}
		who, err := b.who(c.request, cookies...)
		got := strings.TrimSpace(who.User.Name + " " + string(who.Method))
		if err != nil {
			got = ""
		}
		if !errors.Is(err, c.err) || got != c.want {
			t.Errorf("%s: got %q, %v; want %q, %v", name, got, err, c.want, c.err)
		}
		if who.Method == MethodToken && who.Ambient() || err == nil && who.Method != MethodToken && !who.Ambient() {
			t.Errorf("%s: ambient is %v", name, who.Ambient())
		}
	}
	if b.logs.FilterMessageSnippet("not in console.proxy.allow").Len() == 0 {
		t.Error("a forged header is not logged")
	}
	b.noSecrets(cookie.Value)
}

// Without a proxy its header is a header like others.
func TestWithoutAProxyItsHeaderIsNothing(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	if who, err := b.who(get("127.0.0.1", "X-Remote-User: ann", "Authorization: Bearer lsu_bo")); err != nil || who.User.Name != "bo" {
		t.Errorf("got %+v, %v", who, err)
	}
	if _, err := b.who(get("127.0.0.1", "X-Remote-User: ann")); !errors.Is(err, ErrNobody) {
		t.Errorf("got %v", err)
	}
}

func TestOpenIsNobodyAtAll(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*Config){
		"users": func(*Config) {}, "proxy": func(c *Config) { c.Proxy = &ProxyConfig{Allow: []string{"10.0.0.5"}} },
		"oidc": func(c *Config) {
			c.OIDC = &OIDCConfig{Issuer: "https://id.example.org", ClientID: "c", RedirectURL: "https://x.example.org" + CallbackPath}
		},
	} {
		b := newFixture(t, edit)
		if b.desk.Open() {
			t.Errorf("%s: open with users", name)
		}
		b.write("users: []\n")
		if b.desk.Open() != (name == "users") {
			t.Errorf("%s: open is %v", name, b.desk.Open())
		}
	}
	b := newFixture(t)
	b.write("users:\n  - {name: off, roles: [viewer], disabled: true, token_sha256: [" + sum("x") + "]}\n")
	if b.desk.Open() {
		t.Error("to disable the last user opens the console")
	}
}

func TestSessionLifeTime(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	cookie, err := b.signIn("192.0.2.1", "ann", password)
	if err != nil {
		t.Fatal(err)
	}
	if cookie.Name != cookieName || cookie.Secure || !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || cookie.Domain != "" || cookie.MaxAge != 0 {
		t.Errorf("cookie %+v", cookie)
	}
	alive := func(what string, want bool) {
		t.Helper()
		who, err := b.who(get("192.0.2.1"), cookie)
		if want && (err != nil || who.User.Name != "ann") || !want && !errors.Is(err, ErrNobody) {
			t.Errorf("%s: %+v, %v", what, who.User, err)
		}
	}
	for range 11 { // it is used every hour but a second
		b.pass(time.Hour - time.Second)
		alive("in use", true)
	}
	b.pass(time.Hour - time.Second)
	alive("after twelve hours, all but twelve seconds", true)
	b.pass(13 * time.Second)
	alive("after twelve hours", false)
	if len(b.store.rows) != 0 {
		t.Error("a session that is over is kept")
	}
	if cookie, err = b.signIn("192.0.2.1", "ann", password); err != nil {
		t.Fatal(err)
	}
	b.pass(time.Hour)
	alive("idle for an hour", false)
	if cookie, err = b.signIn("192.0.2.1", "ann", password); err != nil {
		t.Fatal(err)
	}
	for range 5 { // a page that was left open looks for itself
		b.pass(11 * time.Minute)
		if _, err := b.who(get("192.0.2.1", "Sec-Fetch-Mode: cors"), cookie); err != nil {
			t.Fatal(err)
		}
	}
	b.pass(6 * time.Minute)
	alive("left open for an hour", false)
}

// Nobody can have given somebody else's browser a session: its id changes.
func TestSessionsAreFreshAndEnd(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	fixed := &http.Cookie{Name: cookieName, Value: strings.Repeat("A", 43)}
	first, err := b.signIn("192.0.2.1", "ann", password, fixed)
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.signIn("192.0.2.1", "bo", password, first)
	if err != nil {
		t.Fatal(err)
	}
	if first.Value == fixed.Value || second.Value == first.Value || len(first.Value) != 43 {
		t.Errorf("ids %q, %q", first.Value, second.Value)
	}
	for _, old := range []*http.Cookie{fixed, first} {
		if _, err := b.who(get("192.0.2.1"), old); !errors.Is(err, ErrNobody) {
			t.Errorf("an id from before: %v", err)
		}
	}
	who, err := b.who(get("192.0.2.1"), second)
	if err != nil || !slices.Equal(who.User.Teams, []string{"checkout"}) {
		t.Fatalf("%+v, %v", who, err)
	}
	third, _ := b.signIn("192.0.2.2", "bo", password)
	other, _ := b.who(get("192.0.2.2"), third)
	if who.FormToken() == other.FormToken() || !who.CheckForm(who.FormToken()) || who.CheckForm(other.FormToken()) || who.CheckForm("") || (Principal{}).CheckForm("") {
		t.Error("a form of one session is good in another")
	}
	if strings.Contains(who.FormToken(), second.Value) || who.Session.Digest == second.Value {
		t.Error("the id is reported")
	}
	for range 2 { // the second is a double click
		if err := b.desk.SignOut(t.Context(), who); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.who(get("192.0.2.1"), second); !errors.Is(err, ErrNobody) {
		t.Errorf("after the sign-out: %v", err)
	}
	if _, err := b.who(get("192.0.2.2"), third); err != nil {
		t.Errorf("the other session: %v", err)
	}
	if b.store.count(ActionOK) != 3 || b.store.count(ActionSignOut) != 1 {
		t.Errorf("entries %q", b.store.actions())
	}
	if _, err := b.signIn("192.0.2.3", "ann", "lsu_ann"); err != nil {
		t.Fatal(err)
	}
	for i, want := range map[int]string{0: `"by":"password"`, len(b.store.entries) - 1: `"by":"token"`} {
		if e := b.store.entries[i]; e.Action != ActionOK || !strings.Contains(string(e.Detail), want) {
			t.Errorf("entry %d: %s %s, want %s", i, e.Action, e.Detail, want)
		}
	}
	b.noSecrets(first.Value, second.Value, third.Value)
}

// What is written into the users file counts at the next reload.
func TestUsersFileEndsSessions(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(b *fixture) error{
		"disabled":       func(b *fixture) error { _, err := users.SetDisabled(b.file, "ann", true); return err },
		"other password": func(b *fixture) error { return users.SetPassword(b.file, "ann", "another password") },
		"gone": func(b *fixture) error {
			b.write("users:\n  - {name: bo, roles: [viewer], token_sha256: [" + sum("lsu_bo") + "]}\n")
			return nil
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			cookie, err := b.signIn("192.0.2.1", "ann", password)
			if err != nil {
				t.Fatal(err)
			}
			if err := change(b); err != nil {
				t.Fatal(err)
			}
			b.reload()
			if _, err := b.who(get("192.0.2.1"), cookie); !errors.Is(err, ErrNobody) {
				t.Errorf("got %v", err)
			}
			if len(b.store.rows) != 0 {
				t.Error("the session is kept")
			}
		})
	}
	b := newFixture(t)
	cookie, _ := b.signIn("192.0.2.1", "bo", "lsu_bo") // a token in the password's place
	b.write("users:\n  - {name: bo, roles: [requester], teams: [fraud], token_sha256: [" + sum("lsu_bo") + "]}\n")
	who, err := b.who(get("192.0.2.1"), cookie)
	if err != nil || who.User.Can(users.VerbApprove) || !who.User.Can(users.VerbRequest) || !slices.Equal(who.User.Teams, []string{"fraud"}) {
		t.Errorf("with other roles: %+v, %v", who.User, err)
	}
	b.write("users:\n  - {name: bo, roles: [requester], token_sha256: [" + sum("lsu_new") + "]}\n")
	if _, err := b.who(get("192.0.2.1"), cookie); !errors.Is(err, ErrNobody) {
		t.Errorf("the token is withdrawn: %v", err)
	}
}

// While the store is away nobody signs in, and who was seen before may look.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	seen, _ := b.signIn("192.0.2.1", "ann", password)
	other, _ := b.signIn("192.0.2.1", "bo", password)
	b.desk.sessionCache.remove(digestOf(other.Value)) // as after a restart
	b.store.away = errAway
	b.pass(10 * time.Minute)
	if who, err := b.who(get("192.0.2.1"), seen); err != nil || who.User.Name != "ann" {
		t.Errorf("seen before: %v", err)
	}
	if _, err := b.who(get("192.0.2.1"), other); !errors.Is(err, errAway) {
		t.Errorf("not seen before: %v", err)
	}
	if _, err := b.signIn("192.0.2.1", "ann", password); !errors.Is(err, errAway) {
		t.Errorf("a sign-in: %v", err)
	}
	if who, err := b.who(get("192.0.2.1", "Authorization: Bearer lsu_ann")); err != nil || who.User.Name != "ann" {
		t.Errorf("a token: %v", err)
	}
	b.store.away = nil
	b.pass(55 * time.Minute) // 65 since the store saw it, 55 since it was seen
	if who, err := b.who(get("192.0.2.1"), seen); err != nil || who.User.Name != "ann" {
		t.Errorf("prolonged while the store was away: %v", err)
	}
}

func TestSignInElsewhere(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	for name, c := range map[string]struct {
		who   string
		roles []users.Role
		want  string // roles; "": refused
		why   string
	}{
		"new person":           {"eve@example.org", []users.Role{users.RoleViewer}, "viewer", ""},
		"external, more roles": {"ext", []users.Role{users.RoleApprover}, "viewer approver", ""},
		"external, no roles":   {"EXT", nil, "viewer", ""},
		"no role":              {"eve", nil, "", "has no role here"},
		"disabled":             {"off", []users.Role{users.RoleAdmin}, "", "disabled"},
		"one of ours":          {"Ann", []users.Role{users.RoleAdmin}, "", "external: true"},
		"no name":              {"eve\n<script>", []users.Role{users.RoleAdmin}, "", "cannot be the name"},
		"the agent":            {"Agent", []users.Role{users.RoleAdmin}, "", "cannot be the name"},
	} {
		w := httptest.NewRecorder()
		user, err := b.desk.SignInAs(w, get("192.0.2.1"), c.who, c.roles, []string{"t"})
		if c.want == "" {
			if !errors.Is(err, locksteward.ErrRefused) || !strings.Contains(err.Error(), c.why) || len(w.Result().Cookies()) != 0 || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		var roles []string
		for _, r := range user.Roles {
			roles = append(roles, string(r))
		}
		if err != nil || strings.Join(roles, " ") != c.want || !slices.Equal(user.Teams, []string{"t"}) {
			t.Errorf("%s: %+v, %v", name, user, err)
		}
		who, err := b.who(get("192.0.2.1"), w.Result().Cookies()...)
		if err != nil || fmt.Sprint(who.User) != fmt.Sprint(user) {
			t.Errorf("%s: next request: %+v, %v", name, who.User, err)
		}
	}
	w := httptest.NewRecorder()
	if _, err := b.desk.SignInAs(w, get("192.0.2.1"), "ext", []users.Role{users.RoleAdmin}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := users.SetDisabled(b.file, "ext", true); err != nil {
		t.Fatal(err)
	}
	b.reload()
	if _, err := b.who(get("192.0.2.1"), w.Result().Cookies()...); !errors.Is(err, ErrNobody) {
		t.Errorf("disabled since: %v", err)
	}
	w = httptest.NewRecorder()
	if _, err := b.desk.SignInAs(w, get("192.0.2.1"), "eve", []users.Role{users.RoleAdmin}, nil); err != nil {
		t.Fatal(err)
	}
	b.write("users:\n  - {name: Eve, roles: [viewer], token_sha256: [" + sum("lsu_eve") + "]}\n")
	if _, err := b.who(get("192.0.2.1"), w.Result().Cookies()...); !errors.Is(err, ErrNobody) {
		t.Errorf("somebody else has the name since: %v", err)
	}
}

func wait(t *testing.T, err error) *WaitError {
	t.Helper()
	w, ok := errors.AsType[*WaitError](err)
	if !ok {
		t.Fatalf("got %v, want to be reported to wait", err)
	}
	return w
}

// Who guesses is locked out where they are, and keeps nobody out elsewhere.
func TestLockout(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ann", "nobody"} { // both look the same from outside
		b := newFixture(t)
		for i := range 10 {
			if _, err := b.signIn("192.0.2.66", name, "guess"); !errors.Is(err, ErrUnknown) {
				t.Fatalf("%s, guess %d: %v", name, i, err)
			}
			b.pass(3 * time.Second)
		}
		_, err := b.signIn("192.0.2.66", name, password)
		if w := wait(t, err); !w.Locked || w.After > 15*time.Minute || w.After < 14*time.Minute {
			t.Errorf("%s: %+v", name, w)
		}
		if _, err := b.who(get("192.0.2.66", basic(name, password))); !wait(t, err).Locked {
			t.Errorf("%s: Basic is a way around: %v", name, err)
		}
		if b.store.count(ActionLocked) != 1 || b.store.count(ActionFailed) == 0 {
			t.Errorf("%s: entries %q", name, b.store.actions())
		}
		b.noSecrets("guess")
		if name != "ann" {
			continue
		}
		if _, err := b.signIn("192.0.2.1", "ann", password); err != nil {
			t.Errorf("ann herself: %v", err)
		}
		if _, err := b.who(get("192.0.2.66", "Authorization: Bearer lsu_ann")); err != nil {
			t.Errorf("a token of 256 bits is not guessed: %v", err)
		}
		b.pass(15 * time.Minute)
		if _, err := b.signIn("192.0.2.66", "ann", password); err != nil {
			t.Errorf("a quarter of an hour later: %v", err)
		}
	}
}

// Failures are forgotten by a success, and by time.
func TestLockoutForgets(t *testing.T) {
	t.Parallel()
	b := newFixture(t, func(c *Config) { c.Lockout.Failures = 3 })
	for range 5 {
		for range 2 {
			if _, err := b.signIn("192.0.2.1", "ann", "typo"); !errors.Is(err, ErrUnknown) {
				t.Fatal(err)
			}
			b.pass(3 * time.Second)
		}
		if _, err := b.signIn("192.0.2.1", "ann", password); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		b.pass(8 * time.Minute)
		if _, err := b.signIn("192.0.2.1", "bo", "typo"); !errors.Is(err, ErrUnknown) {
			t.Fatal(err)
		}
	}
}

// Many at once are no way around the count.
func TestLockoutCountsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	var checked atomic.Int64
	var group sync.WaitGroup
	for range 40 {
		group.Go(func() {
			if _, err := b.who(get("192.0.2.66", basic("ann", "guess"))); errors.Is(err, ErrUnknown) {
				checked.Add(1)
			}
		})
	}
	group.Wait()
	if n := checked.Load(); n > DefaultFailures {
		t.Errorf("%d guesses were checked", n)
	}
}

// Guesses from many addresses lock a name out everywhere, but not from where that
// person signed in before.
func TestLockoutOfAName(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	if _, err := b.signIn("192.0.2.1", "ann", password); err != nil {
		t.Fatal(err)
	}
	locked := 0
	for i := range 120 {
		b.pass(1100 * time.Millisecond)
		_, err := b.signIn(fmt.Sprintf("2001:db8:0:%x::1", i), "ann", "guess")
		if !errors.Is(err, ErrUnknown) && wait(t, err).Locked {
			locked++
		}
	}
	if locked != 120-100 {
		t.Errorf("%d of 120 were locked out", locked)
	}
	if _, err := b.signIn("198.51.100.1", "ann", password); !wait(t, err).Locked {
		t.Errorf("from a new place: %v", err)
	}
	if _, err := b.signIn("192.0.2.1", "ann", password); err != nil {
		t.Errorf("from her own place: %v", err)
	}
	if _, err := b.signIn("198.51.100.1", "ann", password); !wait(t, err).Locked {
		t.Error("her sign-in lets others in")
	}
}

func TestRatesOfSignIns(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	slow := 0
	for i := range 30 {
		// An IPv6 network is one place.
		_, err := b.signIn(fmt.Sprintf("2001:db8::%x", i+1), fmt.Sprintf("name%d", i), "guess")
		if !errors.Is(err, ErrUnknown) {
			if w := wait(t, err); w.Locked || w.After <= 0 || w.After > 2*time.Second {
				t.Errorf("%+v", w)
			}
			slow++
		}
	}
	if slow != 30-attemptBurst {
		t.Errorf("%d of 30 were slowed down", slow)
	}
	if _, err := b.signIn("2001:db8:1::1", "ann", password); err != nil {
		t.Errorf("from elsewhere: %v", err)
	}
	b.pass(2 * time.Second)
	if _, err := b.signIn("2001:db8::1", "ann", password); err != nil {
		t.Errorf("two seconds later: %v", err)
	}
	if n := b.store.count(ActionFailed); n != attemptBurst {
		t.Errorf("%d failures are written", n)
	}
}

// A flood does not fill the audit trail; what is left out is counted.
func TestFailuresAreWrittenWithMeasure(t *testing.T) {
	t.Parallel()
	b := newFixture(t, func(c *Config) { c.Lockout.Failures = 1000 })
	for range 30 {
		if _, err := b.who(get("192.0.2.66", basic("ann", "guess"))); !errors.Is(err, ErrUnknown) {
			t.Fatal(err)
		}
	}
	if n := b.store.count(ActionFailed); n != 5 {
		t.Errorf("%d failures are written", n)
	}
	b.pass(time.Minute)
	if _, err := b.who(get("192.0.2.66", basic("ann", "guess"))); !errors.Is(err, ErrUnknown) {
		t.Fatal(err)
	}
	if e := b.store.entries[len(b.store.entries)-1]; !strings.Contains(string(e.Detail), `"others_not_written":25`) || e.Actor != agentActor || e.Subject != "ann" {
		t.Errorf("entry %+v %s", e, e.Detail)
	}
	hostile := "lsu_secretsecret"
	for _, name := range []string{hostile, "<b>\x00\xff\u202e" + strings.Repeat("x", 500)} {
		if _, err := b.signIn("192.0.2.3", name, "guess"); !errors.Is(err, ErrUnknown) {
			t.Fatal(err)
		}
		e := b.store.entries[len(b.store.entries)-1]
		if len(e.Subject) > 200 || strings.ContainsAny(e.Subject, "\x00\u202e") || !utf8.ValidString(e.Subject) {
			t.Errorf("subject %q", e.Subject)
		}
	}
	b.noSecrets(hostile)
}

func TestRequestsAreLimitedByUser(t *testing.T) {
	t.Parallel()
	b := newFixture(t, func(c *Config) { c.Rate = RateConfig{PerSecond: 10} })
	ann, bo := Principal{User: users.User{Name: "ann"}}, Principal{User: users.User{Name: "bo"}}
	over := 0
	for i := range 25 {
		if err := b.desk.Allow(get(fmt.Sprintf("192.0.2.%d", i)), ann); err != nil {
			wait(t, err)
			over++
		}
	}
	if over != 5 {
		t.Errorf("%d of 25 were too many", over)
	}
	if err := b.desk.Allow(get("192.0.2.1"), bo); err != nil {
		t.Errorf("another user: %v", err)
	}
	if err := b.desk.Allow(get("192.0.2.1"), Principal{}); err != nil {
		t.Errorf("nobody: %v", err)
	}
	b.pass(time.Second)
	if err := b.desk.Allow(get("192.0.2.1"), ann); err != nil {
		t.Errorf("a second later: %v", err)
	}
}

func TestTableForgetsTheOldest(t *testing.T) {
	t.Parallel()
	tab := newLRU[int](2)
	tab.put("a", 1)
	tab.put("b", 2)
	tab.put("a", 3)
	tab.put("c", 4)
	if _, ok := tab.get("b"); ok {
		t.Error("b is kept")
	}
	if a, ok := tab.get("a"); !ok || a != 3 {
		t.Errorf("a is %d, %v", a, ok)
	}
	tab.remove("a")
	tab.remove("a")
	if v := tab.getOrAdd("a", func() int { return 9 }); v != 9 || len(tab.rows) != 2 || tab.order.Len() != 2 {
		t.Errorf("a is %d, %d rows", v, len(tab.rows))
	}
}
