package agent_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/agent"
)

// A store that was lost or emptied looks new; its audit key shows that it is not.
func TestLostStoreIsReported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "x.db")
	cfg, err := config.Parse("c", []byte("targets: [{name: a, url: 'redis://127.0.0.1:1'}]\nstore: {dsn: 'sqlite:"+file+
		"'}\nmetrics: {listen: '127.0.0.1:0'}\nconsole: {listen: '127.0.0.1:0', users_file: '"+dir+"/users.yaml'}"))
	if err != nil {
		t.Fatal(err)
	}
	reported := func(what string) bool {
		t.Helper()
		core, logs := observer.New(zap.ErrorLevel)
		a, err := agent.New(context.Background(), zap.New(core), cfg, agent.Options{})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		// Run writes the entry agent.start, and ends at once.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := a.Run(ctx); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return logs.FilterMessageSnippet("was its file lost?").Len() > 0
	}
	if reported("new") {
		t.Error("a new store is called lost")
	}
	if reported("again") {
		t.Error("a store that is there is called lost")
	}
	if err := os.Truncate(file, 0); err != nil {
		t.Fatal(err)
	}
	if !reported("emptied") {
		t.Error("nobody is notified of a store that was emptied")
	}
}
