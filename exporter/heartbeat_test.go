package exporter_test

import (
	"testing"
	"time"

	"github.com/locksteward/locksteward/exporter"
)

func TestHeartbeatAndStaleSweeps(t *testing.T) {
	t.Parallel()
	e := newExporter(t, exporter.Config{}, "a")
	want(t, e, map[string]float64{"heartbeat_last_success_timestamp_seconds": absent, `sweep_stale{target="m"}`: absent})
	e.ObserveSweep(sweep(0))
	e.SetHeartbeat(time.UnixMilli(1_800_000_000_500))
	e.SetSweepStale(map[string]bool{"m": true, "gone": true})
	want(t, e, map[string]float64{
		"heartbeat_last_success_timestamp_seconds": 1_800_000_000.5, `sweep_stale{target="m"}`: 1, `sweep_stale{target="gone"}`: absent,
	})
	e.SetSweepStale(map[string]bool{"m": false})
	want(t, e, map[string]float64{`sweep_stale{target="m"}`: 0})
	e.RemoveTarget("m")
	want(t, e, map[string]float64{`sweep_stale{target="m"}`: absent})
}
