package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testcert"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// docBed is the machine of somebody who follows a page that presumes something: an
// agent that runs, people, locks.
type docBed struct {
	*pageRun
	agentRuns *exec.Cmd
	users     []byte // The users file as it was made.
	rdb       *redis.Client
}

// people are the users of the bed, by role. A command is run as who may do just
// that, unless it says who it is.
var people = map[string]string{"vic": "viewer", "rita": "requester", "paul": "approver", "root": "admin", "max": "break-glass"}

// asWhom gives a command that talks to the agent the token of one of people.
const asWhom = `#!/bin/sh
case " $* " in *" --token-file "*) exec "$NEXT" "$@" ;; esac
if [ -n "$LOCKSTEWARD_TOKEN" ]; then exec "$NEXT" "$@"; fi
case "$1 $2" in
"release request") who=rita ;;
"release approve" | "silences add" | "silences expire" | "findings accept") who=paul ;;
"release break-glass") who=max ;;
"notifications test" | "notifications retry") who=root ;;
*) who=vic ;;
esac
LOCKSTEWARD_TOKEN=$(cat "$PEOPLE/$who") exec "$NEXT" "$@"
`

// newPlainBed has a Redis and the program.
func newPlainBed(t *testing.T) *docBed {
	t.Helper()
	p := newPageRun(t)
	repo, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	p.env = append(p.env, "REPO="+repo, "REDIS="+p.srv.URL(), "AGENT="+p.agent)
	return &docBed{pageRun: p, rdb: p.srv.Client(t)}
}

// newAgentBed has an agent that watches the server as target orders and may release
// there. Its receivers ops and pager refuse what they are told, so that there are
// dead letters; chat takes all.
func newAgentBed(t *testing.T) *docBed {
	t.Helper()
	b := newPlainBed(t)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path != "/chat" {
			w.WriteHeader(http.StatusGone)
		}
	}))
	t.Cleanup(hook.Close)
	b.withPeople(t)
	b.write(t, "audit.pub", b.inProcess(t, "audit", "keygen", b.path("audit.pem")))
	b.write(t, "locksteward.yaml", fmt.Sprintf(`
targets:
  - {name: orders, redis: "%s", schedule: "@every 1s", pace: {idle: 50%%, busy: 50%%}, release_credentials: {}}
classes:
  - {class: orders, match: ["lock:order:*"], team: checkout, expect: 10m, release: approve}
store: {audit_key_file: audit.pem}
alert:
  first_survey: fire
  grouping: {by: [fingerprint], wait: 0s, interval: 0s}
  receivers:
    - {name: ops, webhook: {url: "%s/ops", allow_private: true}}
    - {name: pager, webhook: {url: "%s/pager", allow_private: true}}
    - {name: chat, webhook: {url: "%s/chat", allow_private: true}}
`, b.srv.URL(), hook.URL, hook.URL, hook.URL))
	for _, name := range append([]string{"1"}, stuckOfRunbooks...) {
		b.stuck(t, "lock:order:"+name)
	}
	b.run(t)
	testredis.Eventually(t, 60*time.Second, func() bool { return b.dead(t, "ops") != "" && b.dead(t, "pager") != "" }, "no dead letters")
	b.env = append(b.env, "DEAD="+b.dead(t, "pager"), "FINGERPRINT="+b.finding(t, "lock:order:1"))
	return b
}

// newTLSBed has an agent whose console wants a certificate of whoever comes.
func newTLSBed(t *testing.T) *docBed {
	t.Helper()
	b := newPlainBed(t)
	b.withPeople(t)
	ca := testcert.NewCA(t, "docs")
	server, mine := ca.Issue(t, testcert.Leaf{Name: "locks.example.org"}), ca.Issue(t, testcert.Leaf{Name: "me"})
	for name, text := range map[string][]byte{
		"ca.pem": ca.PEM, "cert.pem": server.Cert, "key.pem": server.Key, "me.pem": mine.Cert, "me.key": mine.Key,
	} {
		b.write(t, name, string(text))
	}
	token, err := os.ReadFile(b.path("people/vic"))
	if err != nil {
		t.Fatal(err)
	}
	b.write(t, "token", string(token))
	b.write(t, "locksteward.yaml", fmt.Sprintf(`
targets: [{name: orders, redis: "%s", schedule: "@every 1s", pace: {idle: 50%%, busy: 50%%}}]
console: {tls_cert_file: cert.pem, tls_key_file: key.pem, tls_client_ca_file: ca.pem}
`, b.srv.URL()))
	b.stuck(t, "lock:order:1")
	b.run(t)
	return b
}

func (b *docBed) path(name string) string { return filepath.Join(b.dir, name) }

func (b *docBed) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(b.path(name)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.path(name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// inProcess runs the program without starting it, and returns what it prints.
func (b *docBed) inProcess(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), args, &stdout, &stderr); code != 0 {
		t.Fatalf("%v: exit code %d\n%s", args, code, stderr.String())
	}
	return stdout.String()
}

// withPeople makes the users file and each one's token, and has commands find them.
func (b *docBed) withPeople(t *testing.T) {
	t.Helper()
	for name, role := range people {
		b.write(t, "people/"+name, b.inProcess(t, "users", "add", name, "--role", role, "--users-file", b.path("users.yaml")))
	}
	var err error
	if b.users, err = os.ReadFile(b.path("users.yaml")); err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "locksteward"), []byte(asWhom), 0o700); err != nil { //nolint:gosec // A program.
		t.Fatal(err)
	}
	b.env = append(b.env, "NEXT="+filepath.Join(b.bin, "locksteward"), "PEOPLE="+b.path("people"), "TOKEN="+b.token(t, "root"),
		"PATH="+bin+":"+b.bin+":"+os.Getenv("PATH"))
}

func (b *docBed) token(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(b.path("people/" + name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(raw))
}

// onlyPeople takes users away that a page before added.
func (b *docBed) onlyPeople(t *testing.T) {
	t.Helper()
	b.write(t, "users.yaml", string(b.users))
	b.reload(t)
}

// run starts the agent and awaits that it is ready.
func (b *docBed) run(t *testing.T) {
	t.Helper()
	b.agentRuns = b.start(t, "locksteward run --config locksteward.yaml >> agent.log 2>&1")
	b.env = append(b.env, fmt.Sprintf("AGENT_PID=%d", b.agentRuns.Process.Pid))
	b.untilReady(t)
	t.Cleanup(func() {
		if log, err := os.ReadFile(b.path("agent.log")); err == nil && t.Failed() {
			t.Logf("the agent's log: %s", log)
		}
	})
}

func (b *docBed) untilReady(t *testing.T) {
	t.Helper()
	testredis.Eventually(t, 60*time.Second, func() bool {
		text, ok := fetch("http://" + b.metrics + "/-/ready")
		return ok && !strings.Contains(text, "first sweep")
	}, "the agent is not ready, or its first sweep does not end")
}

// ask asks the agent's API as one of people, and returns the status.
func (b *docBed) ask(t *testing.T, who, method, path string, answer any) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+b.agent+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	token := who
	if people[who] != "" {
		token = b.token(t, who)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if answer != nil {
		if err := json.NewDecoder(resp.Body).Decode(answer); err != nil {
			t.Fatal(err)
		}
	}
	return resp.StatusCode
}

// reload has the agent read its configuration and the users again.
func (b *docBed) reload(t *testing.T) {
	t.Helper()
	if code := b.ask(t, "root", http.MethodPost, "/-/reload", nil); code/100 != 2 {
		t.Fatalf("reload: status %d", code)
	}
}

// stuck makes a lock of somebody who died between SETNX and EXPIRE.
func (b *docBed) stuck(t *testing.T, key string) {
	t.Helper()
	if err := b.rdb.Set(t.Context(), key, someUUID, 0).Err(); err != nil {
		t.Fatal(err)
	}
}

// finding awaits one about a lock, and returns its fingerprint.
func (b *docBed) finding(t *testing.T, key string) string {
	t.Helper()
	fingerprint := ""
	testredis.Eventually(t, 60*time.Second, func() bool {
		var answer struct {
			Findings []struct{ Fingerprint, Key, Status string }
		}
		b.ask(t, "vic", http.MethodGet, "/api/v1/findings", &answer)
		for _, f := range answer.Findings {
			if f.Key == key && f.Status == "firing" {
				fingerprint = f.Fingerprint
			}
		}
		return fingerprint != ""
	}, "no finding about "+key)
	return fingerprint
}

// dead returns the id of a message that was given up, or nothing.
func (b *docBed) dead(t *testing.T, receiver string) string {
	t.Helper()
	var answer struct {
		Notifications []struct{ ID, Receiver, State string }
	}
	b.ask(t, "vic", http.MethodGet, "/api/v1/notifications", &answer)
	for _, d := range answer.Notifications {
		if d.Receiver == receiver && d.State == "dead" {
			return d.ID
		}
	}
	return ""
}
