package exporter_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// update rewrites the generated part of docs/metrics.md.
var update = flag.Bool("update", false, "rewrite golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
