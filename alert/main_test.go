package alert

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testredis.Settled{M: m, SideBySide: 4}) }
