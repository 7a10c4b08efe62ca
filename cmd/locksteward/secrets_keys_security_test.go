package main

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/testkit/testcert"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// holdsSecret matches the keys that name a file with a secret, or a URL that may have one.
var holdsSecret = regexp.MustCompile(`(^|[._])(password|secret|token|key|url)_files?$|^console\.users_file$|^metrics\.web_config_file$|^store\.dsn$|^targets\[\]\.url$|\.target\.url$`)

// secretKeys are the paths of all keys of the configuration that hold a secret.
func secretKeys() []string {
	secret := reflect.TypeFor[locksteward.Secret]()
	var out []string
	var walk func(t reflect.Type, path string)
	walk = func(t reflect.Type, path string) {
		for f := range t.Fields() {
			name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if name == "-" || !f.IsExported() {
				continue
			}
			below, at := f.Type, strings.TrimPrefix(path+"."+name, ".")
			if options == "inline" {
				at = path
			}
			for below.Kind() == reflect.Pointer {
				below = below.Elem()
			}
			if below == secret || below.Kind() == reflect.Slice && below.Elem() == secret || holdsSecret.MatchString(at) {
				out = append(out, at)
				continue
			}
			if below.Kind() == reflect.Slice {
				below, at = below.Elem(), at+"[]"
			}
			if below.Kind() == reflect.Struct {
				walk(below, at)
			}
		}
	}
	walk(reflect.TypeFor[config.Config](), "")
	return out
}

// keyBed is an agent that is configured by its environment, with a canary in each key
// that holds a secret.
type keyBed struct {
	*secretBed
	env     []string
	covered map[string]bool
	dsn     string // of the store, without a password
	nobody  string // an address where nobody listens
	ca      *testcert.CA
}

var number = regexp.MustCompile(`\[\d+\]`)

// set sets a key.
func (b *keyBed) set(path, value string) {
	b.env = append(b.env, config.Variable(path)+"="+value)
}

// has says that a key has the canary now.
func (b *keyBed) has(path, canary string) string {
	b.covered[strings.TrimSuffix(number.ReplaceAllString(path, "[]"), "[]")] = true
	b.secrets[path] = canary
	return canary
}

// secret sets a key to a canary with something around it, in a file or as it is.
func (b *keyBed) secret(path, before string) {
	text := before + b.has(path, b.mint(path))
	if strings.HasSuffix(number.ReplaceAllString(path, ""), "secrets") || strings.HasSuffix(number.ReplaceAllString(path, ""), "secret_files") {
		text = "whsec_" + base64.StdEncoding.EncodeToString([]byte(text+"0123456789"))
	}
	if strings.Contains(path, "_file") {
		text = b.file("secret-"+config.Variable(path), text+"\n")
	}
	b.set(path, text)
}

// pair sets the keys of a certificate and its key, whose bytes are the canary.
func (b *keyBed) pair(cert, key string) []byte {
	p := b.ca.Issue(b.t, testcert.Leaf{Name: "agent"})
	b.has(key, strings.Split(string(p.Key), "\n")[1])
	b.set(cert, b.file("cert-"+config.Variable(cert), string(p.Cert)))
	b.set(key, b.file("secret-"+config.Variable(key), string(p.Key)))
	return p.Cert
}

// newKeyBed configures all of it; of two keys that exclude each other where there can be
// one alone, second takes the other one.
func newKeyBed(t *testing.T, dsn string, second bool) *keyBed {
	t.Helper()
	b := &keyBed{
		secretBed: &secretBed{canaries: &canaries{t: t, secrets: map[string]string{}}, dir: t.TempDir(), redis: testredis.Start(t), tokens: map[string]string{}},
		covered:   map[string]bool{}, dsn: dsn, nobody: freeAddr(t), ca: testcert.NewCA(t, "authority"),
	}
	rdb := b.redis.Client(t)
	if err := rdb.Set(t.Context(), "lock:order:1", b.mint("token of a lock"), 0).Err(); err != nil {
		t.Fatal(err)
	}
	// Targets: the one that answers, one with its password in its URL, one with TLS, one
	// with Sentinels, and those of DNS.
	for i, user := range []string{"scanner", "releaser"} {
		path := []string{"targets[0].password_file", "targets[0].release_credentials.password_file"}[i]
		b.secret(path, "")
		if err := rdb.Do(t.Context(), "ACL", "SETUSER", user, "on", ">"+b.secrets[path], "~*", "&*", "+@all").Err(); err != nil {
			t.Fatal(err)
		}
	}
	b.set("targets[0].name", "main")
	b.set("targets[0].url", strings.TrimSuffix(b.redis.URL(), "/0"))
	b.set("targets[0].schedule", "@every 1s")
	b.set("targets[0].username", "scanner")
	b.set("targets[0].release_credentials.username", "releaser")
	for i, at := range []string{"targets[1]", "targets[2]", "targets[3]", "targets_from.srv[0].target", "targets_from.srv[1].target"} {
		b.set(at+".name", []string{"url", "tls", "sentinels", "srv-{host}", "srv2-{host}"}[i])
		switch i {
		case 0, 4:
			b.set(at+".url", "redis://ann:"+b.has(at+".url", b.mint(at+".url"))+"@"+map[int]string{0: b.nobody, 4: "{host}:{port}"}[i])
		default:
			b.set(at+".url", []string{"", "rediss://" + b.nobody, "redis+sentinel://" + b.nobody + "/mymaster", "rediss://{host}:{port}"}[i])
		}
		if i == 1 || i == 3 {
			b.pair(at+".cert_file", at+".key_file")
			b.pair(at+".release_credentials.cert_file", at+".release_credentials.key_file")
		}
		if i == 2 || i == 3 {
			b.secret(at+".sentinel_password_file", "")
		}
		if i == 3 {
			b.set(at+".username", "ann")
			b.secret(at+".password_file", "")
			b.set(at+".release_credentials.username", "bob")
			b.secret(at+".release_credentials.password_file", "")
		}
	}
	b.set("targets_from.srv[0].record", "_redis._tcp.example.org")
	b.set("targets_from.srv[1].record", "_redis._tcp.example.com")
	b.set("targets_from.dns", b.nobody)
	b.receivers()
	b.house(second)
	return b
}

// receivers are those of every kind, with their secrets in files and as they are.
func (b *keyBed) receivers() {
	web := "http://" + b.nobody + "/"
	for i, r := range []struct {
		kind    string
		plain   []string // key=value
		secrets []string
	}{
		{"webhook", nil, []string{"url_file", "secret_files[0]"}},
		{"webhook", nil, []string{"url", "secrets[0]"}},
		{"alertmanager", []string{"username=ann"}, []string{"url_file", "password_file"}},
		{"alertmanager", []string{"username=ann"}, []string{"url", "password"}},
		{"alertmanager", nil, []string{"urls[0]", "token"}},
		{"alertmanager", nil, []string{"url_file", "token_file"}},
		{"slack", nil, []string{"url_file"}},
		{"slack", nil, []string{"url"}},
		{"pagerduty", nil, []string{"url_file", "routing_key_file"}},
		{"pagerduty", nil, []string{"url", "routing_key"}},
		{"dingtalk", nil, []string{"url_file", "secret_files[0]"}},
		{"dingtalk", nil, []string{"url", "secrets[0]"}},
		{"feishu", nil, []string{"url_file", "secret_files[0]"}},
		{"feishu", nil, []string{"url", "secrets[0]"}},
		{"wecom", nil, []string{"url_file"}},
		{"wecom", nil, []string{"url"}},
		{"email", []string{"server=" + b.nobody, "from=a@example.com", "to=[b@example.com]", "username=ann"}, []string{"password_file"}},
		{"email", []string{"server=" + b.nobody, "from=a@example.com", "to=[b@example.com]", "username=ann"}, []string{"password"}},
	} {
		path := fmt.Sprintf("alert.receivers[%d]", i)
		b.set(path+".name", r.kind+string(rune('a'+i)))
		b.set(path+".kind", r.kind)
		path += "."
		b.set(path+"allow_private", "true")
		for _, pair := range r.plain {
			name, value, _ := strings.Cut(pair, "=")
			b.set(path+name, value)
		}
		for _, name := range r.secrets {
			before := ""
			if strings.HasPrefix(name, "url") {
				before = web
			}
			b.secret(path+name, before)
		}
	}
	b.set("alert.grouping.wait", "0s")
	b.set("alert.grouping.interval", "0s")
	b.set("alert.first_sweep", "fire")
}

// house is what belongs to no target: heartbeat, sinks, store, people, listeners.
func (b *keyBed) house(second bool) {
	t, web := b.t, "http://"+b.nobody+"/"
	for i, at := range []string{"audit.sinks[0].webhook.", "audit.sinks[1].webhook.", "alert.heartbeat.webhook."} {
		b.set(at+"allow_private", "true")
		if i == 1 || i == 2 && second {
			b.secret(at+"url", web)
			b.secret(at+"secrets[0]", "")
		} else {
			b.secret(at+"url_file", web)
			b.secret(at+"secret_files[0]", "")
		}
	}
	b.set("audit.sinks[0].name", "one")
	b.set("audit.sinks[1].name", "two")
	where, err := url.Parse(b.dsn)
	if err != nil {
		t.Fatal(err)
	}
	name := where.User.Username()
	if second {
		b.secret("store.password_file", "")
	} else {
		where.User = url.UserPassword(name, b.has("store.dsn", b.mint("store.dsn")))
	}
	b.set("store.dsn", where.String())
	key := filepath.Join(b.dir, "secret-audit-key")
	if out, err := exec.Command("openssl", "genpkey", "-algorithm", "ed25519", "-out", key).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	raw, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	b.has("store.audit_key_file", lines[min(1, len(lines)-1)])
	b.set("store.audit_key_file", key)

	for who, role := range map[string]string{"ana": "requester", "bo": "approver", "root": "admin"} {
		token := regexp.MustCompile(`[A-Za-z0-9_-]{20,}`).FindString(string(b.cli("", "users", "add", who, "--role", role)))
		if token == "" {
			t.Fatal("no token")
		}
		b.tokens[who], b.secrets["API token of "+who] = token, token
	}
	people, err := os.ReadFile(filepath.Join(b.dir, "users.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	hash := regexp.MustCompile(`[A-Za-z0-9+/=_$-]{40,}`).FindString(string(people))
	if hash == "" {
		t.Fatalf("no hash in %s", people)
	}
	b.has("console.users_file", hash)
	b.set("console.users_file", "users.yaml")
	console, metrics := freeAddr(t), freeAddr(t)
	b.set("console.listen", console)
	b.roots = x509.NewCertPool()
	b.roots.AppendCertsFromPEM(b.ca.PEM)
	b.pair("console.tls_cert_file", "console.tls_key_file")
	b.console = "https://" + console
	b.set("console.oidc.issuer", "https://"+b.nobody)
	b.set("console.oidc.client_id", "locksteward")
	b.set("console.oidc.redirect_url", b.console+"/sign-in/oidc/callback")
	b.set("console.oidc.roles", "{oncall: [approver]}")
	b.secret("console.oidc.client_secret_file", "")
	password := b.mint("password of the metrics")
	crypted, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	b.has("metrics.web_config_file", string(crypted))
	b.set("metrics.web_config_file", b.file("secret-web", "basic_auth_users: {ann: '"+string(crypted)+"'}\n"))
	b.set("metrics.listen", metrics)
	b.metrics = "http://ann:" + password + "@" + metrics
	b.set("log.level", "debug")
}

// program runs the program with the agent's environment.
func (b *keyBed) program(args ...string) *exec.Cmd {
	cmd := exec.Command("locksteward", args...)
	cmd.Dir = b.dir
	cmd.Env = append(append(os.Environ(), "GORACE=atexit_sleep_ms=0", "NO_COLOR=1"), b.env...)
	return cmd
}

// Every key of the configuration that holds a secret has a canary, in its file or in its
// own variable, and no output shows one. A key that is new has none, and the test says so.
func TestSecretsOfAllKeysShowNowhere(t *testing.T) {
	covered := map[string]bool{}
	one, two := testpg.Database(t), testpg.Database(t)
	t.Parallel()
	t.Run("beds", func(t *testing.T) {
		for i, dsn := range []string{one, two} {
			b := newKeyBed(t, dsn, i == 1)
			for path := range b.covered {
				covered[path] = true
			}
			b.look()
		}
	})
	keys := secretKeys()
	for _, path := range keys {
		if !covered[path] {
			t.Errorf("%s holds a secret, or is named as if it did, and has no canary: add one to newKeyBed", path)
		}
	}
	for path := range covered {
		if !slices.Contains(keys, path) {
			t.Errorf("%s has a canary and is no key that holds a secret", path)
		}
	}
}

// look runs an agent on the bed and looks through what it says.
func (b *keyBed) look() {
	t := b.t
	t.Helper()
	b.file("locksteward.yaml", "classes: [{class: orders, match: ['lock:order:*'], release: approve}]\n")
	// The search finds what is there.
	if len(b.in([]byte(strings.Join(b.env, "\n")))) == 0 {
		t.Fatal("the search is blind: the environment has no secrets")
	}
	out, err := b.program("config", "check", "locksteward.yaml").CombinedOutput()
	if err != nil {
		t.Fatalf("config check: %v: %s", err, out)
	}
	b.clean("config check", out)
	// The same with a mistake in each: all of it stands in one list of problems.
	wrong := b.program("config", "check", "locksteward.yaml")
	for _, pair := range b.env {
		if name, value, _ := strings.Cut(pair, "="); b.in([]byte(value)) != nil {
			wrong.Env = append(wrong.Env, name+"=\x01"+value+"\x01://@%zz", name+"X="+value, name+"_7="+value)
		}
	}
	out, err = wrong.CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("means nothing")) {
		t.Errorf("nothing is wrong: %s", out)
	}
	b.clean("config check with mistakes", out)

	b.agent = b.program("run", "--config", "locksteward.yaml")
	b.agent.Stdout, b.agent.Stderr = b, b
	if err := b.agent.Start(); err != nil {
		t.Fatal(err)
	}
	b.done = make(chan error, 1)
	go func() { b.done <- b.agent.Wait() }()
	t.Cleanup(func() {
		_ = b.agent.Process.Kill()
		b.done <- <-b.done
	})
	testredis.Eventually(t, 60*time.Second, func() bool {
		log := string(b.logged())
		for _, word := range []string{`"agent started"`, "webhooka", "alertmanagerc", "slackg", "pagerdutyi", "dingtalkk", "feishum", "wecomo", "emailq", "emailr", `"sentinels"`, `"tls"`} {
			if !strings.Contains(log, word) {
				return false
			}
		}
		return true
	}, "not everything is tried")
	b.lookAtHTTP()
	b.lookAtProcesses()
	for _, args := range [][]string{{"users", "list", "--access", "--config", "locksteward.yaml"}, {"acl", "--config", "locksteward.yaml"}, {"audit", "verify", "--config", "locksteward.yaml"}} {
		out, _ := b.program(args...).CombinedOutput()
		b.clean(strings.Join(args[:2], " "), out)
	}
	if err := b.agent.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	b.done <- <-b.done
	if !bytes.Contains(b.logged(), []byte("goroutine ")) {
		t.Error("no goroutines were printed")
	}
	b.clean("log at level debug, and a crash", b.logged())
	out, err = exec.Command(testpg.Program(t, "pg_dump"), "--dbname="+b.dsn).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("lock:order:1")) && !bytes.Contains(out, []byte("agent.start")) {
		t.Fatalf("dump: %v: %.500s", err, out)
	}
	b.clean("database", out)
	t.Logf("%d secrets, %d outputs: %s", len(b.secrets), len(b.outputs), strings.Join(b.outputs, "; "))
}
