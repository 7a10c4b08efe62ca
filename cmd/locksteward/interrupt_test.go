package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// Ctrl-C ends what looks for long, at once, with 130, and leaves no half-written
// file behind.
func TestInterruptedLooksLeaveNothing(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"init":     {"init", "URL", "--observe", "10m", "--yes", "--config", "FILE"},
		"scan":     {"scan", "URL", "--observe", "10m", "--baseline", "FILE", "--update-baseline"},
		"report":   {"report", "URL", "--observe", "10m"},
		"one look": {"scan", "URL", "--baseline", "FILE", "--update-baseline"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testredis.Start(t)
			if err := server.Client(t).Set(t.Context(), "lock:order:1", "1", 0).Err(); err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			for i := range args {
				args[i] = strings.NewReplacer("FILE", filepath.Join(dir, "out"), "URL", "redis://"+server.Addr()).Replace(args[i])
			}
			var stdout, stderr bytes.Buffer
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if name == "one look" {
				cancel() // before the first answer
			}
			code := make(chan int, 1)
			go func() { code <- run(ctx, args, &stdout, &stderr) }()
			if name != "one look" {
				client := server.Client(t)
				testredis.Eventually(t, 30*time.Second, func() bool {
					info, err := client.Info(t.Context(), "commandstats").Result()
					return err == nil && strings.Contains(info, "cmdstat_scan:")
				}, "the server is not asked")
			}
			cancel()
			if got := <-code; got != exitInterrupted {
				t.Errorf("exit code %d, want %d; %s", got, exitInterrupted, stderr.String())
			}
			// What a scan found until then is shown, as incomplete.
			if partial := name == "scan"; !strings.Contains(stderr.String(), "interrupted") ||
				partial != (stdout.Len() > 0) || partial && !strings.Contains(stdout.String(), "INCOMPLETE") {
				t.Errorf("stdout %q, stderr %q", stdout.String(), stderr.String())
			}
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) != 0 {
				t.Errorf("left behind: %v, %v", entries, err)
			}
		})
	}
}
