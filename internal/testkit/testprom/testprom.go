// Package testprom runs a real Prometheus for tests, on loopback, until the test
// ends.
//
// # Guarantees
//
//   - [Start] returns a server that answers; it is gone with its files when the test
//     is over.
//   - Where the program is missing a test is skipped, loudly; with CI set it fails.
package testprom

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/redisproc"
)

// Options are what Prometheus does.
type Options struct {
	// Targets are scraped, host:port each, as the job "locksteward".
	Targets []string
	// RuleFiles are loaded as they are.
	RuleFiles []string
	// Alertmanagers are notified of alerts, host:port each.
	Alertmanagers []string
	// ExternalLabels are on all that leaves this Prometheus.
	ExternalLabels map[string]string
	// Every is how often it scrapes and evaluates; 1 s unless set.
	Every time.Duration
	// Features are switched on, by their names in --enable-feature.
	Features []string
}

// Server is a running Prometheus.
type Server struct {
	// Addr is host:port.
	Addr   string
	client *http.Client
}

// Program finds a program of a package that the machine may lack.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%s is not installed, and CI skips nothing; run: make deps", name)
		}
		t.Skipf("SKIPPED: %s is not installed; run: make deps", name)
	}
	return path
}

// Start runs Prometheus until the test ends.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	binary := Program(t, "prometheus")
	dir := t.TempDir()
	config, err := o.config()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	s := &Server{Addr: freeAddr(t), client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}}
	log := &syncBuffer{}
	ctx, cancel := context.WithCancel(context.Background())
	args := []string{"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + s.Addr}
	if len(o.Features) > 0 {
		args = append(args, "--enable-feature="+strings.Join(o.Features, ","))
	}
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cancel()
		err := <-ended
		if t.Failed() {
			t.Logf("prometheus: %v\n%s", err, log)
		}
	})
	return s
}

// config is the file that Prometheus reads: JSON, which is YAML as well.
func (o Options) config() ([]byte, error) {
	type list map[string]any
	every := "1s"
	if o.Every > 0 {
		every = fmt.Sprintf("%dms", o.Every.Milliseconds())
	}
	var files []string
	for _, f := range o.RuleFiles {
		abs, err := filepath.Abs(f)
		if err != nil {
			return nil, fmt.Errorf("find rules: %w", err)
		}
		files = append(files, abs)
	}
	config := list{
		"global":         list{"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every, "external_labels": o.ExternalLabels},
		"rule_files":     files,
		"scrape_configs": []list{{"job_name": "locksteward", "static_configs": []list{{"targets": o.Targets}}}},
	}
	if len(o.Alertmanagers) > 0 {
		config["alerting"] = list{"alertmanagers": []list{{"static_configs": []list{{"targets": o.Alertmanagers}}}}}
	}
	return json.Marshal(config)
}

// Get decodes the data of an answer of the API. An error of Prometheus says what it
// does not like.
func (s *Server) Get(ctx context.Context, path string, params url.Values, data any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Addr+path+"?"+params.Encode(), nil)
	if err != nil {
		return err
	}
	res, err := s.client.Do(req)
	if err != nil {
		return err
	}
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	err = json.NewDecoder(res.Body).Decode(&answer)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		return fmt.Errorf("%s: HTTP %d: %w", path, res.StatusCode, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s?%s: %s", path, params.Encode(), answer.Error)
	}
	return nil
}

// freeAddr returns a loopback address that nobody listens on now, nor takes before the end
// of the test.
func freeAddr(t testing.TB) string {
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
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// syncBuffer keeps what a process writes.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
