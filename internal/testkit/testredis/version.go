package testredis

import (
	"os"
	"testing"

	"github.com/locksteward/locksteward/internal/redisproc"
)

// Version returns which server tests start. Like [Start] it skips a test that
// cannot have one.
func Version(t testing.TB) redisproc.Version {
	t.Helper()
	need(t)
	path, err := program()
	if err != nil {
		t.Fatalf("%v", err)
	}
	v, err := redisproc.VersionOf(path)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return v
}

// Since skips a test on servers older than a version of Redis, and says what they
// lack.
func Since(t testing.TB, major, minor int, lack string) {
	t.Helper()
	if v := Version(t); !v.AtLeast(major, minor) {
		t.Skipf("%s: %s came with Redis %d.%d", v, lack, major, minor)
	}
}

// Reexecutes says that the server can execute itself anew (DEBUG RESTART,
// DEBUG CRASH-AND-RECOVER). One that [ProgramEnv] names may have been started
// through another program, as those of `make servers` are, and would execute that.
func Reexecutes() bool { return os.Getenv(ProgramEnv) == "" }
