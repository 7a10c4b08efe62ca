package testpg

import (
	"os"
	"path/filepath"
	"testing"
)

// No parallel: the environment is the whole process's.
func TestProgramsAreFound(t *testing.T) {
	root := t.TempDir()
	install := func(dir string, names ...string) string {
		t.Helper()
		dir = filepath.Join(root, dir)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	found := func(want string) {
		t.Helper()
		got, err := programs([]string{"/nowhere/*", filepath.Join(root, "lib/*/bin")})
		if err != nil || got != want {
			t.Errorf("found %q, %v; want %q", got, err, want)
		}
	}
	install("lib/9/bin", "postgres", "initdb")
	newest := install("lib/15/bin", "postgres", "initdb")
	install("lib/17/bin", "initdb") // the client's package alone
	path, chosen := install("path", "postgres", "initdb"), install("chosen", "postgres", "initdb")

	t.Setenv(binEnv, "")
	t.Setenv("PATH", t.TempDir())
	found(newest)
	t.Setenv("PATH", path)
	found(path)
	t.Setenv(binEnv, chosen)
	found(chosen)
}
