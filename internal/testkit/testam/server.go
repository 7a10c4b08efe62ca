package testam

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/redisproc"
)

// errNotInstalled says that the machine has no Alertmanager.
var errNotInstalled = errors.New("no Alertmanager is installed: run make deps")

// binaries are the names of the program: Debian's packages prefix it.
var binaries = []string{"alertmanager", "prometheus-alertmanager"}

// Options change a server. The zero value is one that tells nobody.
type Options struct {
	// Webhook is notified of all groups, at once; empty: nobody is.
	Webhook string
	// WebConfig is the text of Alertmanager's web configuration file: TLS and
	// passwords.
	WebConfig string
	// RoutePrefix is the path under which all is served.
	RoutePrefix string
}

// Server is one Alertmanager of a test. Its methods fail the test that started it
// when they cannot do their work.
type Server struct {
	t      testing.TB
	opts   Options
	binary string
	dir    string
	addr   string
	run    *run
	client *http.Client
}

// Binary returns the path of the program.
func Binary() (string, error) {
	for _, name := range binaries {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errNotInstalled
}

// Start starts an Alertmanager that is gone at the end of the test.
func Start(t testing.TB, opts Options) *Server {
	t.Helper()
	s := &Server{
		t: t, opts: opts, binary: need(t), dir: t.TempDir(),
		client: &http.Client{Timeout: askTimeout, Transport: &http.Transport{DisableKeepAlives: true}},
	}
	s.write("alertmanager.yml", opts.config())
	if opts.WebConfig != "" {
		s.write("web.yml", opts.WebConfig)
	}
	port, release, err := redisproc.ReservePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := release(); err != nil {
			t.Error(err)
		}
	})
	s.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	t.Cleanup(s.end)
	s.start()
	return s
}

// need returns the program, or skips or fails a test that cannot have a server.
func need(t testing.TB) string {
	t.Helper()
	path, err := Binary()
	switch {
	case testing.Short():
		t.Skip("needs a real Alertmanager: not run with -short")
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatalf("%v", err)
	default:
		t.Skipf("SKIPPED, NOTHING TESTED: %v", err)
	}
	return path
}

func (o Options) config() string {
	receiver := "  - name: test\n"
	if o.Webhook != "" {
		receiver += fmt.Sprintf("    webhook_configs: [{url: %q, send_resolved: true}]\n", o.Webhook)
	}
	return "route: {receiver: test, group_by: ['...'], group_wait: 0s, group_interval: 1s, repeat_interval: 1h}\nreceivers:\n" + receiver
}

func (s *Server) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// URL returns the address as the configuration of a receiver wants it.
func (s *Server) URL() string {
	scheme := "http://"
	if strings.Contains(s.opts.WebConfig, "tls_server_config") {
		scheme = "https://"
	}
	return scheme + s.addr + s.opts.RoutePrefix
}

// Alert is one alert as Alertmanager gives it.
type Alert struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	UpdatedAt    time.Time         `json:"updatedAt"`
	GeneratorURL string            `json:"generatorURL"`
	Fingerprint  string            `json:"fingerprint"`
}

// Alerts returns the alerts that fire now and have the given values of labels
// (name, value, ...), by name, severity and fingerprint.
func (s *Server) Alerts(labels ...string) []Alert {
	s.t.Helper()
	q := url.Values{}
	for i := 0; i+1 < len(labels); i += 2 {
		q.Add("filter", fmt.Sprintf("%s=%q", labels[i], labels[i+1]))
	}
	raw, err := s.get("/api/v2/alerts?" + q.Encode())
	if err != nil {
		s.fatal("read alerts", err)
	}
	var out []Alert
	if err := json.Unmarshal(raw, &out); err != nil {
		s.fatal("read alerts", fmt.Errorf("%w: %s", err, raw))
	}
	by := func(a Alert) string {
		return a.Labels["alertname"] + " " + a.Labels["severity"] + " " + a.Labels["fingerprint"] + " " + a.Fingerprint
	}
	slices.SortFunc(out, func(a, b Alert) int { return cmp.Compare(by(a), by(b)) })
	return out
}

func (s *Server) get(path string) ([]byte, error) {
	resp, err := s.client.Get(s.URL() + path)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, raw)
	}
	return raw, err
}

// Kill ends the process and returns when it is gone.
func (s *Server) Kill() {
	s.t.Helper()
	if err := s.run.kill(); err != nil {
		s.fatal("kill", err)
	}
}

// Restart kills the process if it runs, starts it again at the same address, and
// returns when it answers. It knows no alert then.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	s.start()
}

func (s *Server) end() {
	if s.run == nil {
		return
	}
	if err := s.run.kill(); err != nil {
		s.t.Errorf("end Alertmanager: %v", err)
	}
	if s.t.Failed() {
		s.t.Logf("log of Alertmanager %s ends:\n%s", s.addr, s.run.log.tail())
	}
}

func (s *Server) fatal(verb string, err error) {
	s.t.Helper()
	s.t.Fatalf("%s Alertmanager: %v", verb, err)
}
