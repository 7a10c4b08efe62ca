package demo

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// options are those of a demo that runs once, in directories of the test.
// patience is how long a story may take on a machine that has other work.
const patience = 90 * time.Second

func options(t *testing.T, out *output) Options {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Options{Once: true, Out: out, Holder: []string{self, holderArg}, Version: "1.2.3", AnyPort: true, limit: patience}
}

// output keeps what is written and tells who waits for it.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	waiting map[string]chan struct{}
	fail    string // from this text on, writing fails
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(b)
	for word, ch := range o.waiting {
		if strings.Contains(o.text.String(), word) {
			close(ch)
			delete(o.waiting, word)
		}
	}
	if o.fail != "" && strings.Contains(o.text.String(), o.fail) {
		return 0, errors.New("the pipe is closed")
	}
	return len(b), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// wrote returns a channel that is closed when word was written.
func (o *output) wrote(word string) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waiting == nil {
		o.waiting = map[string]chan struct{}{}
	}
	ch := make(chan struct{})
	o.waiting[word] = ch
	return ch
}

// wantWhole checks that a report has all that the demo promises.
func wantWhole(t *testing.T, out *output, s scene) {
	t.Helper()
	text := out.String()
	want := []string{
		"SIGKILL to process", "released: Released: the hold was ended and 1 waiting client was notified.",
		"refused by policy", "the client that waited is awake and has the lock", "release.execute  released",
		"hold/too-long on " + s.order() + " is resolved",
		"it never expires by itself", "A crash between taking the lock and setting its TTL",
		`locksteward_findings{class="stock",risk="deadlock",rule="ttl/none",severity="critical",target="demo"} 1`,
		`locksteward_releases_total{class="orders",outcome="released",target="demo"} 1`,
		"locksteward scan redis",
	}
	for _, e := range s.expected() {
		want = append(want, e.rule)
	}
	for _, r := range s.roles() {
		want = append(want, r.key)
	}
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("the report has no %q", w)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Error("colours were not asked for")
	}
	if t.Failed() {
		t.Log(text)
	}
}

// stage is a server to run the demo on once, and what to check of it.
type stage struct {
	name  string
	opts  Options
	out   *output
	check func(t *testing.T, out *output)

	err  error
	took time.Duration
}

// All of them run side by side, since each spends its time waiting for leases to
// run out: as parallel tests they would take turns on a small machine.
func TestOnce(t *testing.T) {
	t.Parallel()
	stages := []*stage{embeddedStage(t), guestStage(t), clusterStage(t)}
	if testredis.Available() {
		stages = append(stages, ownStage(t))
	}
	var wg sync.WaitGroup
	for _, s := range stages {
		wg.Go(func() {
			began := time.Now()
			s.err = Run(t.Context(), s.opts)
			s.took = time.Since(began)
		})
	}
	wg.Wait()
	for _, s := range stages {
		t.Run(s.name, func(t *testing.T) {
			if s.err != nil {
				t.Fatalf("%v\n%s", s.err, s.out)
			}
			t.Logf("it took %s", s.took.Round(100*time.Millisecond))
			s.check(t, s.out)
		})
	}
}

func newStage(t *testing.T, name string) *stage {
	t.Helper()
	out := &output{}
	return &stage{name: name, opts: options(t, out), out: out}
}

func ownStage(t *testing.T) *stage {
	t.Helper()
	s := newStage(t, "redis-server")
	s.check = func(t *testing.T, out *output) {
		wantWhole(t, out, ownScene())
		if !strings.Contains(out.String(), "redis-server ") || !strings.Contains(out.String(), "started for this demo") {
			t.Errorf("the report does not say which server it is:\n%s", out)
		}
	}
	return s
}

func embeddedStage(t *testing.T) *stage {
	t.Helper()
	s := newStage(t, "embedded")
	s.opts.Embedded = true
	s.check = func(t *testing.T, out *output) {
		wantWhole(t, out, ownScene())
		for _, limit := range []string{"embedded Redis", "clock is driven by this program", "live watch is"} {
			if !strings.Contains(out.String(), limit) {
				t.Errorf("the report does not say %q", limit)
			}
		}
	}
	return s
}

// On a server of somebody else nothing but the demo's own keys is touched, and
// those are gone afterwards; passwords do not show.
func guestStage(t *testing.T) *stage {
	t.Helper()
	const password = "hunter2-canary"
	srv := testredis.Start(t, testredis.WithACL("visitor on >"+password+" ~* &* +@all"))
	rdb := srv.Client(t)
	before := furnish(t, rdb)
	s := newStage(t, "guest")
	s.opts.Redis = &connect.Config{URL: srv.URL(), Username: "visitor", Password: password}
	s.check = func(t *testing.T, out *output) {
		_, rest, _ := strings.Cut(out.String(), "begin with ")
		prefix, _, _ := strings.Cut(rest, ", ")
		if len(prefix) <= len("demo::") || !strings.HasPrefix(prefix, "demo:") {
			t.Fatalf("the report does not name the prefix:\n%s", out)
		}
		wantWhole(t, out, scene{prefix: prefix})
		sameKeys(t, before, snapshot(t, rdb))
		if strings.Contains(out.String(), password) {
			t.Error("the password shows")
		}
		if strings.Contains(out.String(), "lock:mine") {
			t.Errorf("a lock of somebody else shows:\n%s", out)
		}
	}
	return s
}

// One node of a Cluster is enough, as people give it.
func clusterStage(t *testing.T) *stage {
	t.Helper()
	cluster := testredis.StartCluster(t)
	s := newStage(t, "cluster")
	s.opts.Redis = &connect.Config{URL: cluster.Nodes[0].URL()}
	s.check = func(t *testing.T, _ *output) {
		for _, n := range cluster.Nodes {
			if keys := snapshot(t, n.Client(t)); len(keys) > 0 {
				t.Errorf("keys left on %s: %q", n.Addr(), slices.Collect(maps.Keys(keys)))
			}
		}
	}
	return s
}

// Ctrl-C ends a live demo at once, in order, whatever it is doing.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	before := furnish(t, rdb)
	for _, at := range []string{"Locksteward demo", "ttl/none"} {
		ctx, interrupt := context.WithCancel(t.Context())
		out := &output{}
		shown := out.wrote(at)
		opts := options(t, out)
		opts.Once, opts.Size = false, func() (int, int) { return 120, 50 }
		opts.Redis = &connect.Config{URL: srv.URL()}
		done := make(chan error, 1)
		go func() { done <- Run(ctx, opts) }()
		select {
		case <-shown:
		case err := <-done:
			t.Fatalf("the demo ended before it showed %q: %v", at, err)
		}
		interrupt()
		if err := <-done; err != nil {
			t.Errorf("at %q: %v", at, err)
		}
		screen, after, left := strings.Cut(out.String(), leaveScreen)
		if !left || !strings.HasPrefix(screen, enterScreen) || !strings.Contains(after, "What next") {
			t.Errorf("at %q the screen was not left in order: %q", at, after)
		}
		sameKeys(t, before, snapshot(t, rdb))
	}
}

// A live demo plays the whole story, too.
func TestScreen(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	out := &output{}
	shown := out.wrote("is resolved")
	opts := options(t, out)
	opts.Once, opts.Embedded, opts.Colour, opts.breath = false, true, true, time.Millisecond
	opts.Size = func() (int, int) { return 0, 0 } // 80 × 24
	done := make(chan error, 1)
	go func() { done <- Run(ctx, opts) }()
	select {
	case <-shown:
	case err := <-done:
		t.Fatalf("the demo ended: %v\n%s", err, out)
	case <-time.After(patience):
		t.Errorf("the story did not end:\n%s", out)
	}
	interrupt()
	if err := <-done; err != nil {
		t.Error(err)
	}
	for _, want := range []string{"\x1b[31mcritical", "asked for by ana and approved by bo"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the screen never had %q", want)
		}
	}
}

func TestInterruptOnce(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	out := &output{}
	shown := out.wrote("Lock users")
	opts := options(t, out)
	opts.Embedded = true
	done := make(chan error, 1)
	go func() { done <- Run(ctx, opts) }()
	<-shown
	interrupt()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

// A reader that goes away (| head) ends the demo in order.
func TestOutputFails(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	out := &output{fail: "SIGKILL"}
	opts := options(t, out)
	opts.Redis = &connect.Config{URL: srv.URL()}
	err := Run(t.Context(), opts)
	if err == nil || err.Error() != "write output: the pipe is closed" {
		t.Errorf("got %v", err)
	}
	if keys := snapshot(t, srv.Client(t)); len(keys) > 0 {
		t.Errorf("keys left: %q", slices.Collect(maps.Keys(keys)))
	}
}

func TestServerAway(t *testing.T) {
	t.Parallel()
	opts := options(t, &output{})
	opts.Redis = &connect.Config{URL: "redis://127.0.0.1:1/0", Password: "hunter2-canary"}
	err := Run(t.Context(), opts)
	if err == nil || !strings.Contains(err.Error(), "redis://127.0.0.1:1/0 cannot be used") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}

func TestHolderCannotStart(t *testing.T) {
	t.Parallel()
	opts := options(t, &output{})
	opts.Embedded = true
	opts.Holder = []string{filepath.Join(t.TempDir(), "nothing")}
	if err := Run(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "start the process that takes a lock") {
		t.Errorf("got %v", err)
	}
	opts.Holder = nil
	if err := Run(t.Context(), opts); err == nil {
		t.Error("a demo without a holder is taken")
	}
}

func TestHolderThatTakesNoLock(t *testing.T) {
	t.Parallel()
	opts := options(t, &output{})
	opts.Embedded = true
	opts.Holder = []string{"sh", "-c", "echo no server for me >&2"}
	err := Run(t.Context(), opts)
	if err == nil || !strings.Contains(err.Error(), "did not take its lock") || !strings.Contains(err.Error(), "no server for me") {
		t.Errorf("got %v", err)
	}
}

// The holder's process ends when the demo does, however that ended.
func TestHoldEndsWithItsInput(t *testing.T) {
	t.Parallel()
	s, err := startEmbedded("for the test")
	if err != nil {
		t.Fatal(err)
	}
	p := &players{connect: s.connect, scene: s.scene}
	var input bytes.Buffer
	said := strings.NewReader(heldWord + "\n")
	if err := p.send(&input, said); err != nil {
		t.Fatal(err)
	}
	out := &output{}
	if err := Hold(t.Context(), &input, out); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
}

// furnish fills a server with keys of other people, some of which look much like
// the demo's, and returns what is there.
func furnish(t *testing.T, rdb *redis.Client) map[string]string {
	t.Helper()
	ctx := t.Context()
	for _, key := range []string{"lock:mine", "demo:order:42", "demo:locksteward:fence:{1}", "locksteward:exec:{demo:order:42}"} {
		if err := rdb.Set(ctx, key, "theirs", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := rdb.HSet(ctx, "locksteward:exec:{lock:mine}", "request", "r-1").Err(); err != nil {
		t.Fatal(err)
	}
	return snapshot(t, rdb)
}

// snapshot is all keys with their content.
func snapshot(t *testing.T, rdb *redis.Client) map[string]string {
	t.Helper()
	out := map[string]string{}
	keys, err := rdb.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		out[key] = rdb.Dump(t.Context(), key).Val() + rdb.PTTL(t.Context(), key).String()
	}
	return out
}

func sameKeys(t *testing.T, before, after map[string]string) {
	t.Helper()
	if !maps.Equal(before, after) {
		t.Errorf("keys before: %q\nkeys after: %q", slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
	}
}
