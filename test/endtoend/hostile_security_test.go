package endtoend_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/agent"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/testkit/testagent"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/internal/users"
)

// securityAll takes all hostile names, and has each second one released; by itself
// the test takes each fifth, and has one in ten of these released: each takes some
// requests, a connection and two people.
var securityAll = flag.Bool("security.all", false, "all hostile names, not each fifth")

// hostileBed is an agent that watches locks of hostile names.
type hostileBed struct {
	redis   *testredis.Server
	sink    *sink
	console string
	metrics string
	tokens  map[string]locksteward.Secret
	ana, bo *apiclient.Client
}

func newHostileBed(t *testing.T) *hostileBed {
	t.Helper()
	b := &hostileBed{redis: testredis.Start(t), sink: newSink(t), tokens: map[string]locksteward.Secret{}}
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	file := filepath.Join(dir, "locksteward.yaml")
	text := `
targets: [{name: main, url: '` + b.redis.URL() + `', schedule: '@every 1s', pace: {idle: 50%, busy: 50%}, release_credentials: {}}]
classes: [{class: orders, match: ["lock:order:*"], team: checkout, release: approve, max_per_hour: 100000, many_per_minute: 100000}]
metrics: {listen: '127.0.0.1:0'}
console: {listen: '127.0.0.1:0', users_file: '` + filepath.Join(dir, "users.yaml") + `', rate: {per_second: 100000}}
release: {max_per_hour: 100000, undo_window: -1s, watch_for: -1s}
store: {dsn: 'sqlite:` + filepath.Join(dir, "store.db") + `'}
alert:
  grouping: {by: [target, class, rule], wait: 0s, interval: 0s}
  receivers: [{name: hook, kind: webhook, url: '` + b.sink.url + `', allow_private: true, secret_files: ['` + secret + `']}]
`
	for path, content := range map[string]string{secret: b.sink.secret, file: text} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, role := range map[string]users.Role{"ana": users.RoleRequester, "bo": users.RoleApprover} {
		token, err := users.Add(filepath.Join(dir, "users.yaml"), name, []users.Role{role})
		if err != nil {
			t.Fatal(err)
		}
		b.tokens[name] = token
	}
	a := testagent.Run(t, file, agent.Options{})
	b.console, b.metrics = a.ConsoleURL(), "http://"+a.MetricsAddr().String()+"/metrics"
	for who, into := range map[string]**apiclient.Client{"ana": &b.ana, "bo": &b.bo} {
		client, err := apiclient.New(a.ConsoleURL(), b.tokens[who], &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: within})
		if err != nil {
			t.Fatal(err)
		}
		*into = client
	}
	return b
}

// A name of any bytes is one name on its whole way: sweep, store, API, page, metrics,
// webhook, request, approval, release. It is never another's, never markup, never
// a line of its own.
// fault: 53
func TestHostileNames(t *testing.T) {
	t.Parallel()
	names := hostileNames("lock:order:")
	if len(names) == 0 {
		t.Fatal("no names")
	}
	if !*securityAll {
		names = every(5, names)
	}
	b := newHostileBed(t)
	rdb := b.redis.Client(t)
	// The first sweep's findings come as a digest: the names come after it.
	testredis.Eventually(t, within, func() bool {
		list, err := b.ana.Targets(t.Context())
		return err == nil && len(list.Targets) == 1 && list.Targets[0].LastSweep != nil
	}, "no first sweep")
	pipe := rdb.Pipeline()
	for _, name := range names {
		sum := sha256.Sum256([]byte(name))
		pipe.Set(t.Context(), name, hex.EncodeToString(sum[:16]), 0) // as a library's random token
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	found := 0
	defer func() { t.Logf("%d names, %d findings", len(names), found) }()
	testredis.Eventually(t, 2*within, func() bool {
		list, err := b.ana.Findings(t.Context(), apiclient.FindingsQuery{Status: "firing", Rule: "ttl/none", Limit: 1})
		found = list.Total
		return err == nil && list.Total >= len(names)
	}, "not every name has its finding")

	t.Run("API", func(t *testing.T) { b.hostileInAPI(t, names) })
	t.Run("pages", func(t *testing.T) { b.hostileInPages(t, names) })
	t.Run("metrics", func(t *testing.T) { b.hostileInMetrics(t, names) })
	t.Run("webhook", func(t *testing.T) { b.hostileInWebhook(t, names) })
	t.Run("release", func(t *testing.T) { b.hostileReleased(t, names) })
}

// every takes each nth name.
func every(n int, names []string) []string {
	var out []string
	for i := 0; i < len(names); i += n {
		out = append(out, names[i])
	}
	return out
}

// counted collects the exact bytes of keys.
type counted map[string]int

func (c counted) add(t *testing.T, k api.Key) {
	t.Helper()
	raw, err := k.Bytes()
	if err != nil {
		t.Errorf("%+v: %v", k, err)
	}
	c[raw]++
}

func (b *hostileBed) hostileInAPI(t *testing.T, names []string) {
	locks, findings := counted{}, counted{}
	for cursor := ""; ; {
		page, err := b.ana.Locks(t.Context(), apiclient.LocksQuery{Limit: 500, Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range page.Locks {
			locks.add(t, l.Key)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	for cursor := ""; ; {
		page, err := b.ana.Findings(t.Context(), apiclient.FindingsQuery{Rule: "ttl/none", Limit: 500, Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range page.Findings {
			findings.add(t, f.Key)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if d := differ(locks, names); d != "" {
		t.Errorf("locks: %s", d)
	}
	if d := differ(findings, names); d != "" {
		t.Errorf("findings: %s", d)
	}
	for _, name := range names {
		l, err := b.ana.Lock(t.Context(), "main", nil, name, "")
		if err != nil {
			t.Errorf("%q by name: %v", name, err)
			continue
		}
		if got, err := l.Bytes(); err != nil || got != name {
			t.Errorf("asked for %q, got %q, %v", name, got, err)
		}
	}
}

var (
	tag    = regexp.MustCompile(`<(/?[a-zA-Z!][^\s>/]*)`)
	inside = regexp.MustCompile(`(?s)<script[^>]*>(.*?)</script>`)
)

// hostileInPages signs in as a browser and looks at the pages of the locks: each
// name is there as text, and the page has no element that it would not have
// with tame names.
func (b *hostileBed) hostileInPages(t *testing.T, names []string) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	browser := &http.Client{Jar: jar, Transport: transport, Timeout: within}
	resp, err := browser.PostForm(b.console+"/sign-in", url.Values{"name": {"ana"}, "password": {b.tokens["ana"].Reveal()}})
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	look := func(path string) string {
		t.Helper()
		resp, err := browser.Get(b.console + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: status %d, %v", path, resp.StatusCode, err)
		}
		if policy := resp.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") && !strings.Contains(policy, "default-src 'self'") {
			t.Errorf("%s: content security policy %q", path, policy)
		}
		return string(raw)
	}
	elements := map[string]bool{}
	for _, m := range tag.FindAllStringSubmatch(look("/rules"), -1) {
		elements[strings.ToLower(m[1])] = true
	}
	for _, name := range every(11, names) {
		page := look("/locks/one?" + url.Values{"target": {"main"}, "key": {name}}.Encode())
		if sum := api.NewKey(name); sum.KeyB64 != "" {
			page = look("/locks/one?" + url.Values{"target": {"main"}, "key_b64": {sum.KeyB64}}.Encode())
		}
		for _, m := range tag.FindAllStringSubmatch(page, -1) {
			if element := strings.ToLower(m[1]); strings.Contains("img base iframe object embed svg/onload b", element) && !elements[element] || element == "!--" {
				t.Errorf("the page of %q has the element %q", name, m[1])
			}
		}
		for _, m := range inside.FindAllStringSubmatch(page, -1) {
			if strings.Contains(m[1], "alert(") {
				t.Errorf("the page of %q has its own script", name)
			}
		}
		if i := strings.IndexFunc(page, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' && r != '\r' || r == 0x202e || r == 0x2066 }); i >= 0 {
			t.Errorf("the page of %q has %q", name, page[i:min(i+8, len(page))])
		}
		if shown := locksteward.DisplayKey(name); len(shown) < 200 && !strings.Contains(strings.Join(strings.Fields(html.UnescapeString(page)), " "), strings.Join(strings.Fields(shown), " ")) {
			t.Errorf("the page of %q does not show %q", name, shown)
		}
	}
}

func (b *hostileBed) hostileInMetrics(t *testing.T, names []string) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: within}
	resp, err := client.Get(b.metrics)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "lock:order:") {
		t.Error("a name is in the scrape")
	}
	line := regexp.MustCompile(`^(# (HELP|TYPE) )?(locksteward|go|process|promhttp)_[a-z0-9_]+[ {]`)
	for l := range strings.Lines(string(raw)) {
		if !line.MatchString(l) && !strings.HasPrefix(l, "net_") && !strings.HasPrefix(l, "# ") {
			t.Errorf("a line of its own: %q", l)
		}
	}
	total := 0
	for _, m := range regexp.MustCompile(`(?m)^locksteward_locks\{class="orders",library="[a-z-]+",target="main"\} (\d+)$`).FindAllStringSubmatch(string(raw), -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	if total != len(names) {
		t.Errorf("%d locks in the metrics, want %d", total, len(names))
	}
}

func (b *hostileBed) hostileInWebhook(t *testing.T, names []string) {
	got := counted{}
	testredis.Eventually(t, within, func() bool {
		clear(got)
		for _, e := range b.sink.of("firing") {
			got.add(t, e.Key)
		}
		return len(got) >= len(names)
	}, "not every name is reported")
	if d := differ(got, names); d != "" {
		t.Error(d)
	}
}

// hostileReleased has locks released by two people, and looks for their names in
// what the store has of that.
func (b *hostileBed) hostileReleased(t *testing.T, names []string) {
	rdb := b.redis.Client(t)
	step := 10
	if *securityAll {
		step = 2
	}
	chosen := every(step, names)
	work := make(chan string)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for name := range work {
				b.releaseOne(t, name)
			}
		})
	}
	for _, name := range chosen {
		work <- name
	}
	close(work)
	wg.Wait()
	for _, name := range chosen {
		if n := rdb.Exists(context.Background(), name).Val(); n != 0 {
			t.Errorf("%q is still there", name)
		}
	}
	if left := rdb.DBSize(t.Context()).Val(); int(left) < len(names)-len(chosen) {
		t.Errorf("%d keys are left, want at least %d", left, len(names)-len(chosen))
	}
	requests, entries := counted{}, counted{}
	for cursor := ""; ; {
		page, err := b.ana.Requests(t.Context(), apiclient.RequestsQuery{Limit: 500, Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Requests {
			requests.add(t, r.Evidence.Key)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if d := differ(requests, chosen); d != "" {
		t.Errorf("requests: %s", d)
	}
	trail, err := b.ana.AuditVerify(t.Context())
	if err != nil || !trail.Whole {
		t.Errorf("the trail: %+v, %v", trail, err)
	}
	list, err := b.ana.Audit(t.Context(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list.Entries {
		raw, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var k struct{ Key api.Key }
		if json.Unmarshal(raw, &k.Key) == nil && k.Key != (api.Key{}) {
			entries.add(t, k.Key)
		}
	}
	for name := range entries {
		if requests[name] == 0 {
			t.Errorf("the trail names %q, which nobody asked for", name)
		}
	}
	if len(entries) < min(len(chosen), 20) {
		t.Errorf("the trail names %d locks", len(entries))
	}
}

func (b *hostileBed) releaseOne(t *testing.T, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := b.ana.CreateRequest(ctx, api.CreateRequest{Target: "main", Key: api.NewKey(name), Reason: hostileReason(name)})
	if err != nil {
		t.Errorf("request %q: %v", name, err)
		return
	}
	if got, err := r.Evidence.Bytes(); err != nil || got != name {
		t.Errorf("asked to release %q, got %q, %v", name, got, err)
		return
	}
	r, err = b.bo.Approve(ctx, r.ID, api.Decide{Reason: "checked", EvidenceHash: r.EvidenceHash})
	if err != nil || r.State != string(locksteward.RequestReleased) {
		t.Errorf("release %q: %s %q, %v", name, r.State, r.Outcome, err)
	}
}

// hostileReason lets the reason be as hostile as the name, as far as a reason may be
// long.
func hostileReason(name string) string {
	shown := []rune(locksteward.DisplayKey(name))
	return "gone: " + string(shown[:min(len(shown), 200)])
}
