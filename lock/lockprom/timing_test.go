package lockprom

import (
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/lock"
)

func TestSampledTrace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		parent string
		ok     bool
	}{
		{parent, true},
		{strings.TrimSuffix(parent, "01") + "03", true}, // another flag beside
		{strings.TrimSuffix(parent, "01") + "00", false},
		{strings.TrimSuffix(parent, "01") + "0g", false},
		{strings.TrimSuffix(parent, "01") + "g1", false},
		{"", false},
		{parent + "-x", false},
		{"01" + parent[2:], false},
		{strings.ToUpper(parent), false},
		{strings.Replace(parent, traceID, strings.Repeat("0", 32), 1), false},
		{strings.Replace(parent, "00f067aa0ba902b7", strings.Repeat("0", 16), 1), false},
		{strings.Replace(parent, traceID, strings.Repeat("\"", 32), 1), false},
		{strings.Replace(parent, "-", "_", 3), false},
	} {
		id, ok := sampledTrace(c.parent)
		if ok != c.ok || ok && id != traceID {
			t.Errorf("%q: %q, %v", c.parent, id, ok)
		}
	}
}

// TestExemplars reads them where Prometheus does: in OpenMetrics.
func TestExemplars(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	unsampled := strings.TrimSuffix(strings.Replace(parent, traceID, strings.Repeat("e", 32), 1), "01") + "00"
	b.feed(
		lock.Event{Kind: lock.EventAcquired, Class: "c", ID: "1", Took: time.Millisecond, Trace: parent},
		lock.Event{Kind: lock.EventReleased, Class: "c", ID: "1", Took: 2 * time.Second, Trace: parent},
		lock.Event{Kind: lock.EventAcquired, Class: "c", ID: "2", Took: time.Minute, Trace: unsampled},
		lock.Event{Kind: lock.EventReleased, Class: "c", ID: "2", Took: time.Minute, Trace: "rubbish"},
	)
	text := scrape(t, b.reg, "application/openmetrics-text; version=1.0.0")
	if !strings.HasSuffix(text, "# EOF\n") {
		t.Fatal("not OpenMetrics")
	}
	var got []string
	for line := range strings.Lines(text) {
		if series, exemplar, ok := strings.Cut(line, " # "); ok {
			got = append(got, series+" # "+exemplar[:strings.LastIndexByte(exemplar, ' ')])
		}
	}
	wanted := []string{
		`locksteward_client_hold_seconds_bucket{class="c",outcome="released",le="3.0"} 1 # {trace_id="` + traceID + `"} 2.0`,
		`locksteward_client_wait_seconds_bucket{class="c",result="acquired",le="0.001"} 1 # {trace_id="` + traceID + `"} 0.001`,
	}
	if strings.Join(got, "\n") != strings.Join(wanted, "\n") {
		t.Errorf("exemplars:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(wanted, "\n"))
	}
}

// TestNativeHistograms reads what the protobuf format carries.
func TestNativeHistograms(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{"beside classic buckets": {}, "alone": {Buckets: []float64{}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, o)
			for i := range 2000 {
				// From 1 ns to a day: more than the native buckets have room for.
				took := time.Duration(1) << (i % 47)
				b.feed(lock.Event{Kind: lock.EventAcquired, Class: "c", ID: "1", Took: took + time.Duration(i), Trace: parent},
					lock.Event{Kind: lock.EventReleased, Class: "c", ID: "1", Took: took})
			}
			families, err := b.reg.Gather()
			if err != nil {
				t.Fatal(err)
			}
			seen := 0
			for _, f := range families {
				for _, m := range f.GetMetric() {
					h := m.GetHistogram()
					if h == nil || h.GetSampleCount() == 0 {
						continue
					}
					seen++
					buckets := uint32(0)
					for _, span := range h.GetPositiveSpan() {
						buckets += span.GetLength()
					}
					if buckets == 0 || buckets > nativeMaxBuckets+1 {
						t.Errorf("%s has %d native buckets", f.GetName(), buckets)
					}
					// +Inf is one more, if it has an exemplar.
					if classic, n := len(h.GetBucket()), len(o.withDefaults().Buckets); classic < n || classic > n+1 {
						t.Errorf("%s has %d classic buckets, want %d", f.GetName(), classic, n)
					}
					if f.GetName() == table[waitTime].Name && len(h.GetExemplars()) == 0 {
						t.Errorf("%s has no native exemplars", f.GetName())
					}
				}
			}
			if seen != 2 {
				t.Errorf("%d histograms seen, want 2", seen)
			}
		})
	}
}
