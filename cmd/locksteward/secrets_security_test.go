package main

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/redisproc"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// securityAll looks at every output; by itself the test takes each fourth
// command, some pages and the errors of one bad address, since each costs a process.
var securityAll = flag.Bool("security.all", false, "look for secrets in the output of every command, and on every page")

// canaries are secrets that are nowhere else, and what has been looked through for
// them.
type canaries struct {
	t       *testing.T
	secrets map[string]string // by what it is
	outputs []string
}

// mint makes a secret.
func (c *canaries) mint(what string) string {
	c.secrets[what] = "canary" + rand.Text()
	return c.secrets[what]
}

// in returns which secrets an output shows, in any form in which one could stand.
func (c *canaries) in(raw []byte) []string {
	var found []string
	for what, secret := range c.secrets {
		forms := []string{secret, url.QueryEscape(secret), hex.EncodeToString([]byte(secret))}
		if strings.HasPrefix(secret, "canary") { // what is cut short shows enough
			forms = append(forms, secret[:16], secret[len(secret)-16:])
		}
		for before := range 3 {
			// In base64, wherever it begins in what is encoded.
			text := base64.StdEncoding.EncodeToString([]byte("xxx"[:before] + secret))
			forms = append(forms, text[4:len(text)-4])
		}
		if slices.ContainsFunc(forms, func(f string) bool { return bytes.Contains(raw, []byte(f)) }) {
			found = append(found, what)
		}
	}
	slices.Sort(found)
	return found
}

// clean requires that an output shows none.
func (c *canaries) clean(output string, raw []byte) {
	c.t.Helper()
	c.outputs = append(c.outputs, output)
	if found := c.in(raw); len(found) > 0 {
		c.t.Errorf("%s shows: %s", output, strings.Join(found, ", "))
	}
}

// secretBed is an agent, with everything configured that has a secret, as a
// process of its own.
type secretBed struct {
	*canaries
	dir     string
	redis   *testredis.Server
	url     string // of Redis
	console string
	metrics string
	tokens  map[string]string
	roots   *x509.CertPool // of the console's certificate, where it has one
	agent   *exec.Cmd
	done    chan error

	mu       sync.Mutex
	reported [][]byte // what the webhook got, headers and bodies
	log      bytes.Buffer
}

func (b *secretBed) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.Write(p)
}

func (b *secretBed) logged() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.log.Bytes())
}

func (b *secretBed) file(name, text string) string {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// cli runs the program and returns what it says.
func (b *secretBed) cli(token string, args ...string) []byte {
	b.t.Helper()
	out, _ := b.run(token, args...)
	return out
}

// works runs the program, which must do what it is asked for: an error shows little.
func (b *secretBed) works(token string, args ...string) []byte {
	b.t.Helper()
	out, code := b.run(token, args...)
	if code != 0 {
		b.t.Errorf("%v: exit code %d: %s", args, code, out)
	}
	return out
}

func (b *secretBed) run(token string, args ...string) ([]byte, int) {
	b.t.Helper()
	cmd := exec.Command("locksteward", args...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "NO_COLOR=1", "LOCKSTEWARD_AGENT="+b.console, "LOCKSTEWARD_TOKEN="+token)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		b.t.Fatal(err)
	}
	return out, cmd.ProcessState.ExitCode()
}

func freeAddr(t *testing.T) string {
	t.Helper()
	port, release, err := redisproc.ReservePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := release(); err != nil {
			t.Error(err)
		}
	})
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// newSecretBed starts it, with a lock of each kind whose token is a canary.
func newSecretBed(t *testing.T) *secretBed {
	t.Helper()
	b := &secretBed{canaries: &canaries{t: t, secrets: map[string]string{}}, dir: t.TempDir(), redis: testredis.Start(t), tokens: map[string]string{}}
	b.url = strings.TrimSuffix(b.redis.URL(), "/0")
	rdb := b.redis.Client(t)
	for _, user := range []string{"scanner", "releaser"} {
		password := b.mint("Redis password of " + user)
		if err := rdb.Do(t.Context(), "ACL", "SETUSER", user, "on", ">"+password, "~*", "&*", "+@all").Err(); err != nil {
			t.Fatal(err)
		}
		b.file(user, password+"\n")
	}
	for key, value := range map[string]string{
		"lock:order:1": b.mint("token of a lock"), "lock:order:2": "ls2:HOLD2:" + b.mint("token of a lock of ours"),
	} {
		if err := rdb.Set(t.Context(), key, value, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := rdb.HSet(t.Context(), "lock:order:3", "8743c9c0-0795-4907-87fd-6c719a6b4586:"+b.mint("token in a hash"), "1").Err(); err != nil {
		t.Fatal(err)
	}

	path := "/hook/" + b.mint("token in a webhook's URL")
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		b.mu.Lock()
		b.reported = append(b.reported, fmt.Appendf(raw, "%v", r.Header))
		b.mu.Unlock()
		if r.URL.Path != path {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(hook.Close)
	b.file("hook-url", hook.URL+path+"\n")
	b.file("hook-key", "whsec_"+base64.StdEncoding.EncodeToString([]byte(b.mint("signing secret")+"0123456789"))+"\n")
	nobody := freeAddr(t)
	b.file("am-url", "http://"+nobody+"/"+b.mint("token in Alertmanager's URL"))
	b.file("am-password", b.mint("Alertmanager password"))
	b.file("ding-url", "http://"+nobody+"/robot/send?access_token="+b.mint("token of a robot"))
	b.file("ding-secret", "SEC"+b.mint("secret of a robot"))
	b.file("smtp", b.mint("SMTP password"))
	console, metrics := freeAddr(t), freeAddr(t)
	b.console, b.metrics = "http://"+console, "http://"+metrics
	b.file("locksteward.yaml", `
targets:
  - {name: main, url: '`+b.url+`', username: scanner, password_file: scanner, schedule: '@every 1s', pace: {idle: 50%, busy: 50%},
     release_credentials: {username: releaser, password_file: releaser}}
classes: [{class: orders, match: ["lock:order:*"], team: checkout, release: approve}]
metrics: {listen: '`+metrics+`'}
console: {listen: '`+console+`', users_file: users.yaml}
store: {dsn: 'sqlite:store.db'}
log: {level: debug}
alert:
  grouping: {by: [target, class, rule], wait: 0s, interval: 0s}
  receivers:
    - {name: hook, kind: webhook, url_file: hook-url, allow_private: true, secret_files: [hook-key]}
    - {name: am, kind: alertmanager, url_file: am-url, allow_private: true, username: ann, password_file: am-password}
    - {name: ding, kind: dingtalk, url_file: ding-url, allow_private: true, secret_files: [ding-secret]}
    - {name: mail, kind: email, server: '`+nobody+`', from: a@example.com, to: [b@example.com], username: ann, password_file: smtp, allow_private: true}
`)
	for who, role := range map[string]string{"ana": "requester", "bo": "approver", "root": "admin"} {
		token := strings.TrimSpace(string(b.cli("", "users", "add", who, "--role", role)))
		token = regexp.MustCompile(`[A-Za-z0-9_-]{20,}`).FindString(token)
		if token == "" {
			t.Fatal("no token")
		}
		b.tokens[who], b.secrets["API token of "+who] = token, token
	}
	b.clean("config check", b.cli("", "config", "check", "locksteward.yaml"))
	b.agent = exec.Command("locksteward", "run", "--config", "locksteward.yaml")
	b.agent.Dir, b.agent.Stdout, b.agent.Stderr = b.dir, b, b
	b.agent.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	if err := b.agent.Start(); err != nil {
		t.Fatal(err)
	}
	b.done = make(chan error, 1)
	go func() { b.done <- b.agent.Wait() }()
	t.Cleanup(func() {
		_ = b.agent.Process.Kill()
		b.done <- <-b.done
	})
	return b
}

// No secret leaves through any output: each is looked through for canaries.
func TestSecretsShowNowhere(t *testing.T) {
	t.Parallel()
	b := newSecretBed(t)
	// The search finds what is there: where secrets belong they are found.
	for _, name := range []string{"scanner", "hook-url", "am-password"} {
		raw, err := os.ReadFile(filepath.Join(b.dir, name))
		if err != nil || len(b.in(raw)) == 0 {
			t.Fatalf("the search is blind: %s has no secret, %v", name, err)
		}
	}
	testredis.Eventually(t, 60*time.Second, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.reported) > 0 && bytes.Contains(b.log.Bytes(), []byte("ding")) && bytes.Contains(b.log.Bytes(), []byte("am"))
	}, "nobody is notified")
	b.act()
	b.lookAtCLI()
	b.lookAtHTTP()
	b.lookAtProcesses()
	b.lookAtErrors()
	b.mu.Lock()
	reported := bytes.Join(b.reported, []byte("\n"))
	b.mu.Unlock()
	b.clean("webhook messages", reported)
	// A crash prints every goroutine.
	if err := b.agent.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	b.done <- <-b.done
	if !bytes.Contains(b.logged(), []byte("goroutine ")) {
		t.Error("no goroutines were printed")
	}
	b.clean("log at level debug, and a crash", b.logged())
	b.lookAtFiles()
	t.Logf("%d secrets, %d outputs: %s", len(b.secrets), len(b.outputs), strings.Join(b.outputs, "; "))
}

// act has a lock released, so that there are requests, entries and messages.
func (b *secretBed) act() {
	b.t.Helper()
	out := b.cli(b.tokens["ana"], "release", "request", "lock:order:2", "--reason", "its pod is gone", "--output", "json")
	b.clean("release request", out)
	id := regexp.MustCompile(`"id": "([^"]+)"`).FindSubmatch(out)
	if id == nil {
		b.t.Fatalf("no request: %s", out)
	}
	b.clean("release show", b.cli(b.tokens["bo"], "release", "show", string(id[1])))
	b.clean("release preview", b.cli(b.tokens["bo"], "release", "show", string(id[1]), "--preview"))
	out = b.works(b.tokens["bo"], "release", "approve", string(id[1]), "--reason", "checked")
	b.clean("release approve", out)
}

func (b *secretBed) lookAtCLI() {
	b.t.Helper()
	server := []string{b.url, "--server-username", "scanner", "--server-password-file", "scanner"}
	for i, args := range [][]string{
		append([]string{"scan", "--output", "json", "--record", "recording.json"}, server...),
		append([]string{"scan"}, server...),
		{"rules", "test", "recording.json"},
		append([]string{"report", "--observe", "100ms"}, server...),
		append([]string{"explain", "lock:order:1"}, server...),
		append([]string{"explain", "lock:order:3", "--output", "json"}, server...),
		append([]string{"init", "--observe", "100ms", "--yes", "--config", "first.yaml"}, server...),
		append(append([]string{"exec", "--key", "lock:job"}, server...), "--", "env"),
		{"config", "show", "--example"},
		{"users", "list"},
		{"users", "list", "--access", "--config", "locksteward.yaml"},
		{"--version"},
	} {
		if *securityAll || i%4 == 0 {
			b.clean(strings.Join(args[:min(2, len(args))], " "), b.works("", args...))
		}
	}
	for i, args := range [][]string{
		{"locks", "list"},
		{"locks", "show", "lock:order:1", "--output", "json"},
		{"findings", "list", "--output", "json"},
		{"release", "list", "--output", "json"},
		{"notifications", "list", "--output", "json"},
		{"notifications", "list", "--state", "dead"},

		{"silences", "list"},
		{"audit", "list", "--output", "json"},
		{"audit", "verify"},
		{"status", "--output", "json"},
		{"store", "backup", "backup.db"},
	} {
		if *securityAll || i%4 == 0 {
			b.clean(strings.Join(args[:2], " "), b.works(b.tokens["root"], args...))
		}
	}
	if *securityAll {
		b.clean("notifications test", b.cli(b.tokens["root"], "notifications", "test", "ding"))
		b.clean("unlock", b.cli("", append([]string{"unlock", "lock:order:1", "--if", b.condition(server), "--reason", "r", "--print"}, server...)...))
		b.clean("audit export", b.works(b.tokens["root"], "audit", "export", "trail.jsonl"))
	}
}

// condition is what a scan prints for unlock.
func (b *secretBed) condition(server []string) string {
	b.t.Helper()
	m := regexp.MustCompile(`--if (\S+)`).FindSubmatch(b.works("", append([]string{"scan"}, server...)...))
	if m == nil {
		b.t.Fatal("the scan prints no condition")
	}
	return string(m[1])
}

// lookAtHTTP reads every address of the API, the metrics, and every page that a
// link leads to.
func (b *secretBed) lookAtHTTP() {
	b.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		b.t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: b.roots}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Jar: jar, Transport: transport, Timeout: 30 * time.Second}
	get := func(address, token string) []byte {
		b.t.Helper()
		req, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, address, nil)
		if err != nil {
			b.t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := client.Do(req)
		if err != nil {
			b.t.Fatal(err)
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		if err != nil {
			b.t.Fatal(err)
		}
		return raw
	}
	b.clean("metrics", get(b.metrics+"/metrics", ""))
	contract, err := os.ReadFile("../../docs/openapi.yaml")
	if err != nil {
		b.t.Fatal(err)
	}
	paths := regexp.MustCompile(`(?m)^  (/\S+):\n    get:`).FindAllStringSubmatch(string(contract), -1)
	if len(paths) == 0 {
		b.t.Error("no path found in docs/openapi.yaml")
	}
	for _, m := range paths {
		path := strings.ReplaceAll(m[1], "{id}", "none")
		if path == "/api/v1/locks/one" || path == "/api/v1/locks/events" {
			path += "?target=main&key=lock:order:1"
		}
		b.clean("GET "+m[1], get(b.console+path, b.tokens["root"]))
	}
	if _, err := client.PostForm(b.console+"/sign-in", url.Values{"name": {"root"}, "password": {b.tokens["root"]}}); err != nil {
		b.t.Fatal(err)
	}
	at, err := url.Parse(b.console)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, cookie := range jar.Cookies(at) {
		b.secrets["session cookie"] = cookie.Value
	}
	if b.secrets["session cookie"] == "" {
		b.t.Fatal("no session")
	}
	link := regexp.MustCompile(`href="(/[^"]*)"`)
	seen, queue := map[string]bool{"/": true}, []string{"/"}
	most := 25
	if *securityAll {
		most = 150
	}
	for n := 0; len(queue) > 0 && n < most; n++ {
		path := queue[0]
		queue = queue[1:]
		page := get(b.console+path, "")
		b.clean("page "+path, page)
		for _, m := range link.FindAllStringSubmatch(string(page), -1) {
			next := strings.ReplaceAll(m[1], "&amp;", "&")
			if !seen[next] && !strings.HasPrefix(next, "//") && next != "/live" {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
	if !seen["/requests"] {
		b.t.Errorf("the walk misses pages: it saw %v", slices.Sorted(maps.Keys(seen)))
	}
}

// lookAtProcesses reads the command lines of all processes of the machine, the
// agent's and its children's among them.
func (b *secretBed) lookAtProcesses() {
	b.t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(names) == 0 {
		b.t.Log("no /proc here: command lines are not looked at")
		return
	}
	var all bytes.Buffer
	for _, name := range names {
		raw, _ := os.ReadFile(name) // it may have ended
		all.Write(raw)
		all.WriteByte('\n')
	}
	b.clean("command lines of all processes", all.Bytes())
}

// lookAtErrors makes mistakes with secrets, and looks at what is said.
func (b *secretBed) lookAtErrors() {
	b.t.Helper()
	wrong := b.mint("wrong password")
	b.file("wrong", wrong+"\n")
	b.clean("error: wrong password", b.cli("", "scan", b.url, "--server-username", "scanner", "--server-password-file", "wrong"))
	b.clean("error: wrong password of exec", b.cli("", "exec", b.url, "--server-username", "scanner", "--server-password-file", "wrong", "--key", "k", "--", "true"))
	b.clean("error: wrong API token", b.cli(b.mint("wrong API token"), "locks", "list"))
	in := b.mint("password in a URL")
	for _, address := range []string{"redis://ann:" + in + "@127.0.0.1", "redis://ann:" + in + "@bad:port:x", "rediss+x://:" + in + "@h", "redis+sentinel://:" + in + "@h"} {
		b.file("bad.yaml", "targets: [{name: main, url: '"+address+"', password_file: '"+filepath.Join(b.dir, "none")+"'}]\nstore: {dsn: 'postgres://ann:"+in+"@h:x/db'}\nalert: {receivers: [{name: a, kind: webhook, url: 'http://ann:"+in+"@:x/"+in+"'}]}\n")
		b.clean("error: config check of "+strings.ReplaceAll(address, in, "…"), b.cli("", "config", "check", "bad.yaml"))
		b.clean("error: run of "+strings.ReplaceAll(address, in, "…"), b.cli("", "run", "--config", "bad.yaml"))
		// On a command line everybody sees it: it is refused, and not repeated.
		b.clean("error: scan of "+strings.ReplaceAll(address, in, "…"), b.cli("", "scan", address))
		if !*securityAll {
			break
		}
	}
}

// lookAtFiles reads every file that the programs wrote: the store and its
// journals, backup, trail, recording, first configuration, users.
func (b *secretBed) lookAtFiles() {
	b.t.Helper()
	given := []string{"scanner", "releaser", "hook-url", "hook-key", "am-url", "am-password", "ding-url", "ding-secret", "smtp", "wrong", "bad.yaml"}
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		b.t.Fatal(err)
	}
	wrote := map[string]bool{}
	for _, e := range entries {
		if e.IsDir() || slices.Contains(given, e.Name()) {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(b.dir, e.Name()))
		if err != nil {
			b.t.Fatal(err)
		}
		wrote[e.Name()] = len(raw) > 0
		b.clean("file "+e.Name(), raw)
	}
	for name, always := range map[string]bool{"store.db": true, "backup.db": false, "trail.jsonl": false, "recording.json": true, "first.yaml": false, "users.yaml": true} {
		if !wrote[name] && (always || *securityAll) {
			b.t.Errorf("%s was not written: the test looks at less than it says", name)
		}
	}
}
