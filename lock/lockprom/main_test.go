package lockprom

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/goleak"

	"github.com/locksteward/locksteward/lock"
)

var update = flag.Bool("update", false, "rewrite golden files and the generated parts of docs/client-metrics.md")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// parent is a sampled W3C traceparent.
const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	parent  = "00-" + traceID + "-00f067aa0ba902b7-01"
)

// bundle is a collector in a registry, with one watch to feed events into.
type bundle struct {
	*Collector
	reg  *prometheus.Registry
	feed func(...lock.Event)
}

func setup(t testing.TB, o Options) *bundle {
	t.Helper()
	c, err := NewWithOptions(o)
	if err != nil {
		t.Fatal(err)
	}
	reg := prometheus.NewPedanticRegistry()
	if err := reg.Register(c); err != nil {
		t.Fatal(err)
	}
	w := c.newWatch()
	return &bundle{c, reg, func(list ...lock.Event) {
		for _, e := range list {
			w.observe(e)
		}
	}}
}

// scrape returns the text of a scrape.
func scrape(t testing.TB, reg *prometheus.Registry, accept string) string {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	rec := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{EnableOpenMetrics: true}).ServeHTTP(rec, r)
	if rec.Code != http.StatusOK {
		t.Fatalf("scrape: %d %s", rec.Code, rec.Body)
	}
	return rec.Body.String()
}

// samples returns every series by its text form, without the common prefix.
func samples(t testing.TB, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for line := range strings.Lines(scrape(t, reg, "")) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		v, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		out[strings.TrimPrefix(line[:at], "locksteward_client_")] = v
	}
	return out
}

// want compares some series.
func want(t testing.TB, reg *prometheus.Registry, series map[string]float64) {
	t.Helper()
	got := samples(t, reg)
	for name, v := range series {
		g, ok := got[name]
		if !ok {
			t.Errorf("no series %s", name)
		} else if g != v {
			t.Errorf("%s = %g, want %g", name, g, v)
		}
	}
}
