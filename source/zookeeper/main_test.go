package zksource_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/locksteward/locksteward/internal/testkit/testzk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testzk.Main{M: m}) }
