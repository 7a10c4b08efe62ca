package config_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/testkit/testdns"
)

// follower is a configuration whose sources are followed by hand.
type follower struct {
	t   *testing.T
	dir string
	d   *config.Discovery
	now time.Time
}

func follow(t *testing.T, dir, text string) *follower {
	t.Helper()
	f := &follower{t: t, dir: dir, now: time.Now()}
	f.d = config.NewDiscovery(f.load(text), nil)
	return f
}

func (f *follower) load(text string) config.Config {
	f.t.Helper()
	put(f.t, filepath.Join(f.dir, "locksteward.yaml"), text)
	c, err := config.Load(filepath.Join(f.dir, "locksteward.yaml"))
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

// look is one look, with its changes applied; it returns them as lines.
func (f *follower) look() []string {
	f.t.Helper()
	var out []string
	for _, c := range f.d.Take(f.d.Look(f.t.Context(), f.now)) {
		err := f.d.Plan(c)
		f.d.Done(c, err)
		out = append(out, fmt.Sprintf("+%s -%s ~%s %v", strings.Join(c.Added, ","), strings.Join(c.Removed, ","), strings.Join(c.Changed, ","), err == nil))
	}
	return out
}

// names are those of the targets now, with where they lead.
func (f *follower) names() string {
	var out []string
	for _, t := range f.d.Config().Targets {
		out = append(out, t.Name+"="+t.URL)
	}
	return strings.Join(out, " ")
}

func (f *follower) want(names string) {
	f.t.Helper()
	if got := f.names(); got != names {
		f.t.Errorf("targets %q, want %q", got, names)
	}
}

// fails wants the only source not to be followed for a reason, or to be for "".
func (f *follower) fails(reason string) {
	f.t.Helper()
	err := f.d.States()[0].Err
	if reason == "" && err != nil || reason != "" && (err == nil || !strings.Contains(err.Error(), reason)) {
		f.t.Errorf("the source says %v, want %q", err, reason)
	}
}

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func one(name string, port int) string {
	return fmt.Sprintf("  - {name: %s, url: 'redis://127.0.0.1:%d/0'}\n", name, port)
}

// What files say is in use when two looks saw the same; what is doubtful changes
// nothing.
func TestTargetsOfFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "more.yaml")
	put(t, file, "targets:\n"+one("a", 1))
	f := follow(t, dir, "targets_from: {files: [more.yaml]}\ntargets:\n"+one("listed", 9))
	both, a := "listed=redis://127.0.0.1:9/0 a=redis://127.0.0.1:1/0", "listed=redis://127.0.0.1:9/0"
	f.want(both)
	if got := f.look(); got != nil {
		t.Errorf("a file as it was loaded: %q", got)
	}
	put(t, file, "targets:\n"+one("a", 1)+one("b", 2))
	if got := f.look(); got != nil {
		t.Errorf("a file that has just changed: %q", got)
	}
	if got := f.look(); !slices.Equal(got, []string{"+b - ~ true"}) {
		t.Errorf("a target more: %q", got)
	}
	f.want(both + " b=redis://127.0.0.1:2/0")
	put(t, file, "targets:\n"+one("a", 3))
	f.look()
	if got := f.look(); !slices.Equal(got, []string{"+ -b ~a true"}) {
		t.Errorf("one goes, one changes: %q", got)
	}
	now := a + " a=redis://127.0.0.1:3/0"
	f.want(now)

	for name, c := range map[string]struct{ text, says string }{
		"half":            {"targets:\n  - {name: a, re", "more.yaml"},
		"empty":           {"", "targets: missing, write a list, or [] for none"},
		"no list":         {"targets: {}\n", "targets: got a mapping, write a list"},
		"an unknown key":  {"targets:\n  - {name: a, url: 'redis://127.0.0.1:3/0', urls: x}\n", `unknown key (got "x"), did you mean "url"?`},
		"a wrong URL":     {"targets:\n  - {name: a, url: 'http://127.0.0.1'}\n", "more.yaml:2"},
		"twice":           {"targets:\n" + one("a", 3) + one("a", 4), "which targets[1] has already"},
		"one of the list": {"targets:\n" + one("listed", 4), "which targets[0] has already"},
		"classes":         {"classes: []\n", "unknown key"},
		"too large":       {strings.Repeat("#", 5<<20), "larger than 4 MiB"},
	} {
		put(t, file, c.text)
		f.look()
		f.look()
		f.want(now)
		f.fails(c.says)
		if t.Failed() {
			t.Fatalf("with a file that is %s", name)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	f.look()
	f.look()
	f.want(now)
	f.fails("no such file")
	put(t, file, "targets: []\n")
	f.look()
	f.look()
	f.want(a)
	f.fails("")
}

// Of a glob a file that goes takes its targets with it, and all files at once do not:
// a folder that is not mounted looks the same.
func TestTargetsOfAGlob(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	targets := filepath.Join(dir, "targets.d")
	if err := os.Mkdir(targets, 0o700); err != nil {
		t.Fatal(err)
	}
	f := follow(t, dir, "targets_from: {files: ['targets.d/*.yaml']}\n")
	f.want("")
	put(t, filepath.Join(targets, "b.yaml"), "targets:\n"+one("b", 2))
	put(t, filepath.Join(targets, "a.yaml"), "targets:\n"+one("a", 1))
	put(t, filepath.Join(targets, "notes.txt"), "nothing of ours")
	f.look()
	both := "a=redis://127.0.0.1:1/0 b=redis://127.0.0.1:2/0"
	f.want(both)
	if err := os.Rename(targets, targets+".gone"); err != nil {
		t.Fatal(err)
	}
	f.look()
	f.look()
	f.want(both)
	f.fails("matches no file any more")
	if err := os.Rename(targets+".gone", targets); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(targets, "b.yaml")); err != nil {
		t.Fatal(err)
	}
	f.look()
	f.look()
	f.want("a=redis://127.0.0.1:1/0")
	f.fails("")
}

const record = "_redis._tcp.orders.example.org"

func srvConfig(dns *testdns.Server, target string) string {
	return "targets_from: {dns: '" + dns.Addr() + "', srv: [{record: " + record + ", target: " + target + "}]}\n"
}

// Each record is a target; what answers lack for a while counts on, and no answer
// takes nothing away.
func TestTargetsOfSRV(t *testing.T) {
	t.Parallel()
	dns := testdns.Start(t)
	a, b := net.SRV{Target: "redis-a.example.org.", Port: 6379}, net.SRV{Target: "Redis-B.example.org.", Port: 6380}
	f := follow(t, t.TempDir(), srvConfig(dns, "{name: 'orders-{short}', url: 'redis://{host}:{port}/2'}"))
	f.want("")
	f.look()
	f.want("")
	f.fails("no such host")
	if f.d.States()[0].Read {
		t.Error("targets are known though nothing was answered")
	}
	asked := dns.Asked()
	dns.Set(record, b, a)
	f.look()
	if dns.Asked() != asked {
		t.Error("the name is asked for again before its time")
	}
	f.now = f.now.Add(30 * time.Second)
	f.look()
	both := "orders-redis-a=redis://redis-a.example.org:6379/2 orders-redis-b=redis://redis-b.example.org:6380/2"
	f.want(both)
	f.fails("")

	next := func(by time.Duration) { f.now = f.now.Add(by); f.look() }
	dns.Set(record)
	next(time.Hour)
	f.want(both)
	f.fails("no such host") // what Go says of a name without records
	dns.Set(record, net.SRV{Target: ".", Port: 0})
	next(time.Hour)
	f.want(both)
	f.fails("no records")
	dns.Set(record, a)
	next(time.Minute)
	f.want("orders-redis-a=redis://redis-a.example.org:6379/2")
	dns.Set(record, a, b)
	next(time.Minute)
	f.want(both)
	dns.Set(record, a)
	next(5 * time.Minute)
	f.want(both)
	next(4 * time.Minute)
	f.want(both)
	next(2 * time.Minute)
	f.want("orders-redis-a=redis://redis-a.example.org:6379/2")

	// What is no target is reported, the others are followed.
	dns.Set(record, a, net.SRV{Target: strings.Repeat("x", 60) + ".example.org.", Port: 1}, net.SRV{Target: "redis-a.other.org.", Port: 6379})
	next(time.Minute)
	f.want("orders-redis-a=redis://redis-a.example.org:6379/2")
	f.fails("write 1 to 63 letters")
	f.fails("which redis-a.example.org:6379 has already")

	// What was answered is there for the next one, and over a reload.
	dns.Set(record, a, b)
	next(11 * time.Minute)
	dns.Set(record)
	again := config.NewDiscovery(f.load(srvConfig(dns, "{name: 'o-{host}', url: 'rediss://{host}:{port}'}")), f.d.Answers())
	if got := again.Config().Targets; len(got) != 2 || got[0].Name != "o-redis-a.example.org" || got[1].URL != "rediss://redis-b.example.org:6380" || got[0].Source() != "srv "+record {
		t.Errorf("remembered: %+v", got)
	}
	if s := again.States()[0]; !s.Read || s.Targets != 2 {
		t.Errorf("state %+v", s)
	}
}

// All records together are the first nodes of one target.
func TestTargetOfAllRecords(t *testing.T) {
	t.Parallel()
	dns := testdns.Start(t)
	dns.Set(record, net.SRV{Target: "b.example.org.", Port: 7001}, net.SRV{Target: "a.example.org.", Port: 7000})
	f := follow(t, t.TempDir(), srvConfig(dns, "{name: cluster, url: 'redis+cluster://{addresses}'}"))
	f.look()
	f.want("cluster=redis+cluster://a.example.org:7000,b.example.org:7001")

	// What looks once, as doctor does, finds the same.
	c, err := f.load(srvConfig(dns, "{name: cluster, url: 'redis+cluster://{addresses}'}")).Discovered(t.Context())
	if err != nil || len(c.Targets) != 1 || c.Targets[0].Name != "cluster" {
		t.Errorf("found %+v, %v", c.Targets, err)
	}
	dns.Set(record)
	if c, err = f.load(srvConfig(dns, "{name: cluster, url: 'redis+cluster://{addresses}'}")).Discovered(t.Context()); err == nil ||
		!strings.HasPrefix(err.Error(), "targets_from.srv[0]: ask for SRV records") || len(c.Targets) != 0 {
		t.Errorf("found %+v, %v", c.Targets, err)
	}
}

// A name server that keeps silent costs a look its seconds, and changes nothing.
func TestDNSThatKeepsSilent(t *testing.T) {
	t.Parallel()
	dns := testdns.Start(t)
	dns.Set(record, net.SRV{Target: "a.example.org.", Port: 7000})
	f := follow(t, t.TempDir(), srvConfig(dns, "{name: 'o-{short}', url: 'redis://{host}:{port}'}"))
	f.look()
	dns.Silence(true)
	f.now = f.now.Add(time.Minute)
	f.look()
	f.want("o-a=redis://a.example.org:7000")
	f.fails("i/o timeout")
}

func TestSourcesThatAreWrong(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"files: ['[']":       `targets_from.files[0]: got "[", write a path or a glob`,
		"files: ['']":        `targets_from.files[0]: got "", write a path`,
		"files: [none.yaml]": "targets_from.files[0]: read targets: stat",
		"srv: [{record: 'a b', target: {name: '{host}', url: 'redis://{host}:{port}'}}]":                   `targets_from.srv[0].record: got "a b", write a name such as`,
		"srv: [{record: a, every: 10ms, target: {name: '{host}', url: 'redis://{host}:{port}'}}]":          "targets_from.srv[0].every: got 10ms, write at least 1s",
		"srv: [{record: a, keep: -1s, target: {name: '{host}', url: 'redis://{host}:{port}'}}]":            "targets_from.srv[0].keep: got -1s, write a duration",
		"srv: [{record: a, target: {name: '{host}', url: 'redis://10.0.0.1:6379'}}]":                       "targets_from.srv[0].target.url: got",
		"srv: [{record: a, target: {name: orders, url: 'redis://{host}:{port}'}}]":                         "targets_from.srv[0].target.name: got \"orders\", which would be the name of each",
		"srv: [{record: a, target: {name: '{host}', url: 'redis+cluster://{addresses}'}}]":                 "keep one of the two",
		"srv: [{record: a, target: {name: '{host}', url: 'redis://{host}:{port}', password_file: /none}}]": "targets_from.srv[0].target.password_file",
		"srv: [{record: a, target: {name: 'x y {host}', url: 'redis://{host}:{port}'}}]":                   "targets_from.srv[0].target.name: got \"x y redis-0.example.org\"",
		"dns: 127.0.0.1": `targets_from.dns: got "127.0.0.1", write host:port`,
		"srv: [{record: a, target: {name: '{host}', url: 'redis://{host}:{port}'}}], file: [x]": `unknown key`,
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "locksteward.yaml")
		put(t, file, "targets_from: {"+text+"}\ntargets:\n"+one("a", 1))
		if _, err := config.Load(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}
