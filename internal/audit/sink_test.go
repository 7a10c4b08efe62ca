package audit_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/alert"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/audit"
	"github.com/locksteward/locksteward/store"
)

// within is how long a delivery may take on a loaded machine.
const within = 20 * time.Second

// until waits for something that another goroutine does.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.After(within)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-deadline:
			t.Fatal(what + " does not happen")
		case <-tick.C:
		}
	}
}

// buffer is a standard output that somebody reads; broken it takes nothing.
type buffer struct {
	mu     sync.Mutex
	text   bytes.Buffer
	broken bool
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken {
		return 0, errors.New("broken pipe")
	}
	return b.text.Write(p)
}

func (b *buffer) set(broken bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken = broken
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// seqs are the entries of a text, in its order, and how many checkpoints there are.
func seqs(t *testing.T, text string) (out []int64, checkpoints int) {
	t.Helper()
	for line := range strings.Lines(text) {
		var e struct {
			api.Entry
			Checkpoint string `json:"checkpoint"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if e.Checkpoint != "" {
			checkpoints++
			continue
		}
		entry, err := e.Entry.Entry()
		if err != nil {
			t.Fatal(err)
		}
		if store.HashEntry(entry) != entry.Hash {
			t.Errorf("entry %d is not as it was written", entry.Seq)
		}
		out = append(out, entry.Seq)
	}
	return out, checkpoints
}

// inOrder says whether all of 1 to n are there, in their order.
func inOrder(got []int64, n int64) bool {
	want := int64(1)
	for _, seq := range got {
		switch {
		case seq == want:
			want++
		case seq > want:
			return false
		}
	}
	return want == n+1
}

func onlySink(c audit.SinkConfig) audit.Config {
	cfg := audit.DefaultConfig()
	cfg.Sinks = []audit.SinkConfig{c}
	return cfg
}

// Each entry comes once and in order, over restarts, and the checkpoints with them.
func TestSinksGoOnAfterARestart(t *testing.T) {
	t.Parallel()
	s, k := openStore(t), audit.NewKey()
	appendMany(t, s, 0, 1200) // of before there was a sink
	out := &buffer{}
	cfg := onlySink(audit.SinkConfig{Name: "out", Stdout: true})
	for run := range 3 {
		trail := newTrail(t, s, cfg, audit.Options{Key: &k, Stdout: out})
		trail.Start(t.Context())
		appendMany(t, s, 1200+10*run, 10)
		trail.Stop(t.Context())
	}
	got, checkpoints := seqs(t, out.String())
	if !inOrder(got, 1230) || len(got) != 1230 || checkpoints < 3 {
		t.Errorf("%d entries, %d checkpoints", len(got), checkpoints)
	}
	status, err := newTrail(t, s, cfg, audit.Options{Key: &k, Stdout: out}).Status(t.Context())
	if err != nil || status.Entries != 1230 || status.KeyID != k.Public().ID() || status.Checkpoint == nil || status.Checkpoint.Seq != 1230 || len(status.Sinks) != 1 {
		t.Errorf("%+v, %v", status, err)
	}
}

// A sink that takes nothing holds nobody up, is reported, and gets all of it later.
func TestSinkThatDoesNotWork(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	broken, good := &buffer{broken: true}, filepath.Join(t.TempDir(), "trail.jsonl")
	cfg := onlySink(audit.SinkConfig{Name: "out", Stdout: true})
	cfg.Sinks = append(cfg.Sinks, audit.SinkConfig{Name: "file", File: good})
	trail := newTrail(t, s, cfg, audit.Options{Unsigned: "a test", Stdout: broken})
	trail.Start(t.Context())
	defer trail.Stop(t.Context())
	appendMany(t, s, 0, 25)
	until(t, "the other sink's delivery", func() bool { return inOrder(fileSeqs(t, good), 25) })
	view := func() api.AuditSink {
		status, err := trail.Status(t.Context())
		if err != nil || status.Unsigned != "a test" || status.KeyID != "" {
			t.Fatalf("%+v, %v", status, err)
		}
		return status.Sinks[0]
	}
	until(t, "word of the problem", func() bool {
		v := view()
		return strings.Contains(v.Problem, "broken pipe") && v.Behind == 25 && !v.Since.IsZero() && v.Kind == "stdout"
	})
	broken.set(false)
	until(t, "the delivery", func() bool {
		got, _ := seqs(t, broken.String())
		return inOrder(got, 25) && view().Behind == 0 && view().Problem == ""
	})
}

func fileSeqs(t *testing.T, name string) []int64 {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if !bytes.HasSuffix(raw, []byte("\n")) {
		return nil // it is being written
	}
	got, _ := seqs(t, string(raw))
	return got
}

// A file is opened anew when it was moved away, and half a line of a crash is taken
// back before anything is appended.
func TestFileSinkIsRotatedAndMended(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	name := filepath.Join(t.TempDir(), "trail.jsonl")
	if err := os.WriteFile(name, []byte("{\"seq\":1,\"hash\":\"kept\"}\n{\"seq\":2,\"acto"), 0o600); err != nil {
		t.Fatal(err)
	}
	trail := newTrail(t, s, onlySink(audit.SinkConfig{Name: "file", File: name}), audit.Options{})
	trail.Start(t.Context())
	appendMany(t, s, 0, 5)
	until(t, "the delivery", func() bool {
		raw, err := os.ReadFile(name)
		ours, kept := strings.CutPrefix(string(raw), "{\"seq\":1,\"hash\":\"kept\"}\n")
		if err != nil || !kept || !strings.HasSuffix(ours, "\n") {
			return false // it is being written
		}
		got, _ := seqs(t, ours) // a checkpoint may stand among them
		return slices.Equal(got, []int64{1, 2, 3, 4, 5})
	})
	if err := os.Rename(name, name+".1"); err != nil {
		t.Fatal(err)
	}
	trail.Reopen()
	appendMany(t, s, 5, 5)
	until(t, "the delivery to a new file", func() bool { got := fileSeqs(t, name); return len(got) == 5 && got[0] == 6 })
	trail.Stop(t.Context())
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v", err)
	}
	// What is not ours is not touched.
	foreign := filepath.Join(t.TempDir(), "notes")
	if err := os.WriteFile(foreign, []byte("milk, eggs"), 0o600); err != nil {
		t.Fatal(err)
	}
	trail = newTrail(t, s, onlySink(audit.SinkConfig{Name: "notes", File: foreign}), audit.Options{})
	trail.Start(t.Context())
	until(t, "word of the problem", func() bool {
		status, err := trail.Status(t.Context())
		return err == nil && strings.Contains(status.Sinks[0].Problem, "is not ours")
	})
	trail.Stop(t.Context())
	if raw, err := os.ReadFile(foreign); err != nil || string(raw) != "milk, eggs" {
		t.Errorf("%q, %v", raw, err)
	}
}

// What retention took before a sink had it is counted, and the rest comes.
func TestSinkMissesWhatIsGone(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	out := &buffer{}
	cfg := onlySink(audit.SinkConfig{Name: "out", Stdout: true})
	appendMany(t, s, 0, 10)
	trail := newTrail(t, s, cfg, audit.Options{Stdout: out})
	trail.Start(t.Context())
	trail.Stop(t.Context())
	appendMany(t, s, 10, 20)
	if _, err := s.PruneEntries(t.Context(), time.Unix(20, 0)); err != nil {
		t.Fatal(err)
	}
	trail = newTrail(t, s, cfg, audit.Options{Stdout: out})
	trail.Start(t.Context())
	trail.Stop(t.Context())
	got, _ := seqs(t, out.String())
	status, err := trail.Status(t.Context())
	if err != nil || status.Sinks[0].Missed != 10 || status.Sinks[0].Behind != 0 || len(got) != 21 || got[10] != 21 {
		t.Errorf("%+v, %v: %v", status.Sinks, err, got)
	}
}

var rfc5424 = regexp.MustCompile(`^<109>1 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z [!-~]+ locksteward \d+ audit - (\{.*\})$`)

// Messages are those of RFC 5424, whatever carries them, and those that are too long
// for a datagram are cut and not lost.
func TestSyslogSinks(t *testing.T) {
	t.Parallel()
	socket := func(t *testing.T) string { return filepath.Join(t.TempDir(), "log") }
	datagram := func(network, address string) func(t *testing.T) (string, <-chan string) {
		return func(t *testing.T) (string, <-chan string) {
			if network == "unixgram" {
				address = socket(t)
			}
			c, err := net.ListenPacket(network, address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			out := make(chan string, 100)
			go func() {
				raw := make([]byte, 1<<20)
				for {
					n, _, err := c.ReadFrom(raw)
					if err != nil {
						return
					}
					out <- string(raw[:n])
				}
			}()
			if network == "unixgram" {
				return "unix://" + address, out
			}
			return "udp://" + c.LocalAddr().String(), out
		}
	}
	stream := func(network string) func(t *testing.T) (string, <-chan string) {
		return func(t *testing.T) (string, <-chan string) {
			address := "127.0.0.1:0"
			if network == "unix" {
				address = socket(t)
			}
			l, err := net.Listen(network, address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
			out := make(chan string, 100)
			go func() {
				c, err := l.Accept()
				if err != nil {
					return
				}
				counted(c, out)
			}()
			return network + "://" + l.Addr().String(), out
		}
	}
	for name, listen := range map[string]func(t *testing.T) (string, <-chan string){
		"udp": datagram("udp", "127.0.0.1:0"), "unix datagram": datagram("unixgram", ""), "unix stream": stream("unix"), "tcp": stream("tcp"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openStore(t)
			url, got := listen(t)
			trail := newTrail(t, s, onlySink(audit.SinkConfig{Name: "siem", Syslog: url}), audit.Options{})
			trail.Start(t.Context())
			defer trail.Stop(t.Context())
			appendMany(t, s, 0, 8)
			long := strings.Repeat("x", 300<<10)
			if err := s.AppendEntries(t.Context(), entryWith(long)); err != nil {
				t.Fatal(err)
			}
			for want := int64(1); want <= 9; {
				var text string
				select {
				case text = <-got:
				case <-time.After(within):
					t.Fatalf("no message %d", want)
				}
				m := rfc5424.FindStringSubmatch(text)
				if m == nil {
					t.Fatalf("%.200q is no message", text)
				}
				if strings.HasPrefix(m[1], `{"checkpoint":`) {
					continue
				}
				var e api.Entry
				if err := json.Unmarshal([]byte(m[1]), &e); err != nil || e.Seq != want || len(e.Hash) != 64 {
					t.Fatalf("%.200s: %v", m[1], err)
				}
				if e.Seq == 9 && len(e.Reason) < 4<<10 {
					t.Errorf("the long one has %d bytes of reason", len(e.Reason))
				}
				want++
			}
		})
	}
}

// counted reads messages with their lengths in front until the stream ends.
func counted(c net.Conn, out chan<- string) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		length, err := in.ReadString(' ')
		if err != nil {
			return
		}
		n, err := strconv.Atoi(strings.TrimSpace(length))
		if err != nil {
			out <- "bad length " + length
			return
		}
		raw := make([]byte, n)
		if _, err := io.ReadFull(in, raw); err != nil {
			return
		}
		out <- string(raw)
	}
}

// A server that hangs up gets what it may have lost once more from the next
// connection on.
func TestSyslogServerHangsUp(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan string, 1000)
	served := make(chan struct{})
	go func() {
		defer close(served)
		for range 3 {
			c, err := l.Accept()
			if err != nil {
				return
			}
			// A few messages of each connection arrive, then it ends.
			in := bufio.NewReader(c)
			for range 3 {
				length, err := in.ReadString(' ')
				if err != nil {
					break
				}
				n, _ := strconv.Atoi(strings.TrimSpace(length))
				raw := make([]byte, n)
				if _, err := io.ReadFull(in, raw); err != nil {
					break
				}
				got <- string(raw)
			}
			_ = c.Close()
		}
		c, err := l.Accept()
		if err != nil {
			return
		}
		counted(c, got)
	}()
	trail := newTrail(t, s, onlySink(audit.SinkConfig{Name: "siem", Syslog: "tcp://" + l.Addr().String()}), audit.Options{})
	trail.Start(t.Context())
	var seen []int64
	for i := range 6 {
		appendMany(t, s, 5*i, 5)
		want := int64(5*i + 5)
		until(t, fmt.Sprint("delivery of entry ", want), func() bool {
			status, err := trail.Status(t.Context())
			return err == nil && status.Sinks[0].Seq == want
		})
	}
	for len(seen) == 0 || seen[len(seen)-1] != 30 {
		select {
		case text := <-got:
			var e api.Entry
			if err := json.Unmarshal([]byte(rfc5424.FindStringSubmatch(text)[1]), &e); err != nil {
				t.Fatal(err)
			}
			seen = append(seen, e.Seq)
		case <-time.After(within):
			t.Fatalf("the end does not come: %v", seen)
		}
	}
	trail.Stop(t.Context())
	_ = l.Close()
	<-served
	t.Logf("%v", seen)
	if seen[0] != 1 {
		t.Errorf("%v", seen)
	}
}

// A webhook gets what it did not keep again, in messages that its secret signs.
func TestWebhookSink(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("whsec_"+strings.Repeat("QUJD", 10)), 0o600); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var got []int64
	var calls int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var body struct {
			Version int               `json:"version"`
			Records []json.RawMessage `json:"records"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Version != 1 || len(body.Records) > 100 ||
			!strings.HasPrefix(r.Header.Get("Webhook-Signature"), "v1,") || !strings.HasPrefix(r.Header.Get("Webhook-Id"), "audit-") {
			t.Errorf("%v: %+v, %v", err, r.Header, len(body.Records))
		}
		if calls++; calls == 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		var text []byte
		for _, record := range body.Records {
			text = append(append(text, record...), '\n')
		}
		seqs, _ := seqs(t, string(text))
		got = append(got, seqs...)
	}))
	defer server.Close()
	appendMany(t, s, 0, 250)
	trail := newTrail(t, s, onlySink(audit.SinkConfig{Name: "hook", Webhook: &alert.Endpoint{
		URL: locksteward.Secret(server.URL), AllowPrivate: true, SecretFiles: []string{secret},
	}}), audit.Options{})
	trail.Start(t.Context())
	until(t, "the delivery", func() bool { mu.Lock(); defer mu.Unlock(); return inOrder(got, 250) })
	trail.Stop(t.Context())
}

// The anchor file has every checkpoint, and the trail verifies against it.
func TestAnchorFile(t *testing.T) {
	t.Parallel()
	s, k := openStore(t), audit.NewKey()
	cfg := audit.DefaultConfig()
	cfg.AnchorFile, cfg.CheckpointEntries = filepath.Join(t.TempDir(), "anchors"), 10
	for run := range 3 {
		trail := newTrail(t, s, cfg, audit.Options{Key: &k})
		appendMany(t, s, 12*run, 12)
		trail.Start(t.Context())
		until(t, "a checkpoint", func() bool {
			raw, err := os.ReadFile(cfg.AnchorFile)
			return err == nil && strings.Count(string(raw), "\n") == 2*run+1
		})
		appendMany(t, s, 12*run+12, 1)
		trail.Stop(t.Context())
		if run < 2 { // the next run begins where this one ended
			appendMany(t, s, 12*run+13, 3)
		}
	}
	raw, err := os.ReadFile(cfg.AnchorFile)
	if err != nil {
		t.Fatal(err)
	}
	ring := audit.NewKeyring(k.Public())
	a, err := audit.ReadAnchors(bytes.NewReader(raw), ring)
	if err != nil || a.Signed != 6 || a.Unsigned != 0 {
		t.Fatalf("%+v, %v: %s", a, err, raw)
	}
	v, err := audit.CheckStore(t.Context(), s, audit.StoreOptions{Keys: ring, Anchors: a.Places})
	if err != nil || !v.Whole || v.Signed != 6 {
		t.Errorf("%+v, %v", v, err)
	}
}

// stuck is a standard output that nobody reads.
type stuck struct{ free chan struct{} }

func (s stuck) Write(p []byte) (int, error) {
	<-s.free
	return len(p), nil
}

// A sink that takes nothing and gives no error either does not keep the agent from
// ending, and the others get all.
func TestSinkThatHangs(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	out := stuck{make(chan struct{})}
	defer close(out.free)
	name := filepath.Join(t.TempDir(), "trail.jsonl")
	cfg := onlySink(audit.SinkConfig{Name: "out", Stdout: true})
	cfg.Sinks = append(cfg.Sinks, audit.SinkConfig{Name: "file", File: name})
	// What hangs goes on when the test is over: it must not log to it.
	trail, err := audit.New(zap.NewNop(), cfg, s, audit.Options{Stdout: out})
	if err != nil {
		t.Fatal(err)
	}
	trail.Start(t.Context())
	appendMany(t, s, 0, 25)
	until(t, "the other sink's delivery", func() bool { return inOrder(fileSeqs(t, name), 25) })
	appendMany(t, s, 25, 5)
	began := time.Now()
	trail.Stop(t.Context())
	if !inOrder(fileSeqs(t, name), 30) {
		t.Error("the other sink lacks the end")
	}
	if list, err := s.Checkpoints(t.Context(), store.CheckpointQuery{Limit: 1}); err != nil || len(list) != 1 || list[0].Seq != 30 {
		t.Errorf("the end has no checkpoint: %+v, %v", list, err)
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("took %s", took)
	}
}
