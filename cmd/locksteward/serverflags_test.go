package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/initcfg"
	"github.com/locksteward/locksteward/internal/testkit/testcert"
	"github.com/locksteward/locksteward/internal/unlock"
)

// The server of a scan, however it was named, is the server of the command that the
// scan prints and of the configuration that init writes: with its certificates and the
// name that its certificate is for, and without a password.
func TestServerIsPassedOnWhole(t *testing.T) { // no t.Parallel: it sets variables
	dir := t.TempDir()
	ca := testcert.NewCA(t, "servers")
	file := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(file, ca.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		flags, env []string
		noURL      bool
	}{
		"flags":       {flags: []string{"rediss://r:6380/2", "--server-username", "scanner", "--server-ca-file", file, "--server-tls-server-name", "redis.internal"}},
		"environment": {env: []string{"", "rediss://r:6380/2", "_USERNAME", "scanner", "_CA_FILE", file, "_TLS_SERVER_NAME", "redis.internal"}},
		"environment with a password": {
			env:   []string{"", "rediss://scanner:hunter2@r:6380/2", "_CA_FILE", file, "_TLS_SERVER_NAME", "redis.internal"},
			noURL: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for i := 0; i < len(c.env); i += 2 {
				t.Setenv(serverEnv+c.env[i], c.env[i+1])
			}
			read := func(args []string) serverFlags {
				t.Helper()
				var f serverFlags
				cmd := &cobra.Command{RunE: func(*cobra.Command, []string) error { return nil }}
				f.register(cmd, storeForms)
				if err := cmd.ParseFlags(args); err != nil {
					t.Fatal(err)
				}
				if err := cmd.Args(cmd, cmd.Flags().Args()); err != nil {
					t.Fatal(err)
				}
				return f
			}
			f := read(c.flags)
			conn, err := f.config()
			if err != nil {
				t.Fatal(err)
			}
			server, url := f.words(conn)
			line := unlockLine(server, url, locksteward.Lock{Observation: locksteward.Observation{Key: "lock:a"}}, unlock.Condition{Type: "string"})
			if strings.Contains(line, "hunter2") || strings.Contains(line, "rediss://") == c.noURL {
				t.Errorf("the unlock command is %s", line)
			}
			words := strings.Fields(line)
			again := words[2:slices.Index(words, "--if")]
			if !c.noURL {
				again = append(again, words[len(words)-1])
			}
			f2 := read(again)
			asked, err := f2.config()
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if asked.URL != conn.URL || asked.ServerName != "redis.internal" || asked.CAFile != file || asked.Username != "scanner" || asked.Password != conn.Password {
				t.Errorf("unlock would ask %+v, the scan asked %+v", asked, conn)
			}
			target, err := (&initFlags{server: f, name: "main", file: filepath.Join(dir, "new.yaml")}).target(conn)
			if err != nil {
				t.Fatal(err)
			}
			text := initcfg.Write(initcfg.Plan{}, target, time.Now(), nil)
			cfg, err := config.Parse("new.yaml", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			got, err := cfg.Targets[0].Connect()
			if err != nil {
				t.Fatal(err)
			}
			if got.URL != conn.URL || got.ServerName != "redis.internal" || got.CAFile != file || got.Username != "scanner" || strings.Contains(text, "hunter2") {
				t.Errorf("init writes\n%s", text)
			}
		})
	}
}

// A command under a lock does not get the password with which exec asks for the lock.
func TestExecKeepsTheURLWithAPassword(t *testing.T) {
	t.Parallel()
	got := withoutPassword([]string{"A=1", serverPasswordEnv + "=x", serverEnv + "=redis://u:hunter2@h"})
	if len(got) != 1 || got[0] != "A=1" {
		t.Errorf("got %q", got)
	}
	if got := withoutPassword([]string{serverEnv + "=redis://h"}); len(got) != 1 {
		t.Errorf("got %q", got)
	}
}

// An agent without targets does not watch "several".
func TestNoTargetIsNotSeveral(t *testing.T) {
	t.Parallel()
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		raw, _ := json.Marshal(api.TargetList{Targets: []api.Target{}})
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(raw)
	}))
	t.Cleanup(agent.Close)
	client, err := apiclient.New(agent.URL, "", agent.Client())
	if err != nil {
		t.Fatal(err)
	}
	_, err = keyFlags{db: -1}.oneTarget(t.Context(), client)
	if err == nil || strings.Contains(err.Error(), "several") || !strings.Contains(err.Error(), "no target") {
		t.Errorf("got %v", err)
	}
}
