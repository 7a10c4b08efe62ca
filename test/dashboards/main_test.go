package dashboards_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// pictures makes the pictures of docs/img/dashboards anew: `make screenshots`.
var pictures = flag.Bool("pictures", false, "draw the dashboards into docs/img/dashboards; takes some minutes")

func TestMain(m *testing.M) { goleak.VerifyTestMain(testredis.Settled{M: m}) }
