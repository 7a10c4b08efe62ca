package exporter_test

import (
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/exporter"
)

// ended returns an exporter that saw holds of 40 s end, one for each traceparent.
func ended(t *testing.T, traces ...string) *exporter.Exporter {
	t.Helper()
	e := newExporter(t, exporter.Config{}, "a")
	e.ObserveSweep(sweep(0))
	s := sweep(1)
	for _, trace := range traces {
		l := lock("a", "a:1", claimed("c1", t0.Add(-10*time.Second), locksteward.Claim{Trace: trace}), at(later(1)))
		s.Endings = append(s.Endings, locksteward.Ending{Lock: l, How: locksteward.EndedReleased, At: later(1)})
	}
	e.ObserveSweep(s)
	return e
}

func TestExemplarsLeadToTheTraceOfTheAcquire(t *testing.T) {
	t.Parallel()
	url := "http://" + serve(t, exporter.Config{}, ended(t, traceparent), readyNow) + "/metrics"
	c := newClient(t, nil)
	_, open := ask(t, c, "GET", url, accept("application/openmetrics-text; version=1.0.0"))
	const bucket = `locksteward_lock_hold_seconds_bucket{class="a",target="m",le="60.0"} 1 # {trace_id="4bf92f3577b34da6a3ce929d0e0e4736"} 40.0 `
	if !strings.Contains(open, bucket) {
		t.Errorf("no exemplar %q in:\n%s", bucket, grep(open, "hold_seconds"))
	}
	if strings.Contains(open, "_created") {
		t.Error("_created series double the number of series for a Prometheus that does not know them")
	}
	if _, text := ask(t, c, "GET", url, accept("text/plain")); strings.Contains(text, "4bf92f3577b34da6") {
		t.Error("the text format has an exemplar: no parser takes it")
	}
}

// TestForeignBytesAreNoTrace gives what anybody may have written into a lock's
// metadata: the hold counts, the bytes are not shown.
func TestForeignBytesAreNoTrace(t *testing.T) {
	t.Parallel()
	bad := []string{
		"", "CANARY", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7", "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
		"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-CANARY",
		"00-4bf92f3577b34da6a3ce929d0e0e473\xff-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0\n",
		"01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01CANARY", "000-bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		strings.Repeat("0", 1<<20),
	}
	url := "http://" + serve(t, exporter.Config{}, ended(t, bad...), readyNow) + "/metrics"
	_, open := ask(t, newClient(t, nil), "GET", url, accept("application/openmetrics-text; version=1.0.0"))
	if strings.Contains(open, "trace_id") || strings.Contains(open, "CANARY") {
		t.Errorf("an exemplar of foreign bytes:\n%s", grep(open, "hold_seconds"))
	}
	if !strings.Contains(open, `locksteward_lock_hold_seconds_count{class="a",target="m"} 13`) {
		t.Errorf("not all holds count:\n%s", grep(open, "hold_seconds_count"))
	}
	later := ended(t, "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-a-later-version-adds")
	_, open = ask(t, newClient(t, nil), "GET", "http://"+serve(t, exporter.Config{}, later, readyNow)+"/metrics", accept("application/openmetrics-text; version=1.0.0"))
	if !strings.Contains(open, "trace_id") {
		t.Error("a later version of traceparent is not read, though its begin is as today's")
	}
}

// TestHoldTimesAreNativeToo finds both kinds of buckets in what a Prometheus with
// native histograms asks for.
func TestHoldTimesAreNativeToo(t *testing.T) {
	t.Parallel()
	families, err := ended(t, traceparent).Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "locksteward_lock_hold_seconds" {
			continue
		}
		h := f.GetMetric()[0].GetHistogram()
		if len(h.GetBucket()) != 12 || len(h.GetPositiveSpan()) != 1 || h.GetSchema() < 1 {
			t.Errorf("%d classic buckets, %d native spans of schema %d", len(h.GetBucket()), len(h.GetPositiveSpan()), h.GetSchema())
		}
		if x := h.GetExemplars(); len(x) != 1 || x[0].GetLabel()[0].GetValue() != "4bf92f3577b34da6a3ce929d0e0e4736" {
			t.Errorf("native exemplars: %v", x)
		}
		return
	}
	t.Fatal("no hold times")
}

// grep returns the lines with text.
func grep(all, text string) string {
	var out strings.Builder
	for line := range strings.Lines(all) {
		if strings.Contains(line, text) {
			out.WriteString(line)
		}
	}
	return out.String()
}
