package testpg

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// binEnv names the directory of the programs to use, in place of the search.
const binEnv = "LOCKSTEWARD_TEST_POSTGRES_BIN"

// errNotInstalled says that the machine has no PostgreSQL server.
var errNotInstalled = errors.New("PostgreSQL is not installed: run make deps")

// places are where packages put the programs without telling PATH: Debian, Red
// Hat, Homebrew on its two prefixes.
var places = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/opt/homebrew/opt/postgresql*/bin",
	"/usr/local/opt/postgresql*/bin",
}

// programs returns the directory with postgres and initdb: that of binEnv if it
// is set, else the first of PATH, else the newest of the given places.
func programs(places []string) (string, error) {
	if dir := os.Getenv(binEnv); dir != "" {
		if complete(dir) {
			return dir, nil
		}
		return "", errNotInstalled
	}
	if path, err := exec.LookPath("postgres"); err == nil && complete(filepath.Dir(path)) {
		return filepath.Dir(path), nil
	}
	for _, place := range places {
		found, err := filepath.Glob(place)
		if err != nil {
			continue // Our own patterns are well-formed.
		}
		slices.SortFunc(found, func(a, b string) int { return cmp.Compare(version(b), version(a)) })
		if i := slices.IndexFunc(found, complete); i >= 0 {
			return found[i], nil
		}
	}
	return "", errNotInstalled
}

var number = regexp.MustCompile(`\d+`)

// version is the number in a path like /usr/lib/postgresql/15/bin; 0 without.
func version(dir string) int {
	n, err := strconv.Atoi(number.FindString(dir))
	if err != nil {
		return 0
	}
	return n
}

func complete(dir string) bool {
	for _, name := range []string{"postgres", "initdb"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			return false
		}
	}
	return true
}

// Program returns the path of a program that comes with PostgreSQL, pg_dump for
// instance, or skips or fails a test that cannot have it.
func Program(t testing.TB, name string) string {
	t.Helper()
	bin := need(t)
	// A directory of links need not have one to every program.
	real, err := filepath.EvalSymlinks(filepath.Join(bin, "postgres"))
	if err != nil {
		t.Fatalf("find PostgreSQL: %v", err)
	}
	for _, dir := range []string{bin, filepath.Dir(real)} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return filepath.Join(dir, name)
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("PostgreSQL is installed without %s: %v", name, err)
	}
	return path
}
