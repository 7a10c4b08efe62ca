//go:build !linux || !amd64

package testagent

import (
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/redisproc"
)

type wall struct{}

var errNoClock = errors.New("the wall clock of a process can be set on Linux on amd64 alone")

func (*wall) set(time.Duration) error { return errNoClock }

// needClock skips a test where no clock can be set.
func needClock(t testing.TB) {
	t.Helper()
	t.Skip("NOT TESTED: " + errNoClock.Error())
}

func spawnClocked(*exec.Cmd, time.Duration, float64) (*redisproc.Child, *wall, error) {
	return nil, nil, errNoClock
}
