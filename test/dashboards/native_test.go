package dashboards_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testprom"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

const holdTimes = "locksteward_lock_hold_seconds"

// holdsAreNative looks whether the one Prometheus counts as many holds as the other,
// and has nothing but native histograms of them: else its panels would prove nothing.
func holdsAreNative(t *testing.T, classic, native *testprom.Server) {
	t.Helper()
	for _, suffix := range []string{"_bucket", "_count", "_sum"} {
		if found, err := native.Instant(t.Context(), holdTimes+suffix, time.Now()); err != nil || len(found) > 0 {
			t.Errorf("native histograms: %d series %s%s, %v; want none", len(found), holdTimes, suffix, err)
		}
	}
	count := func(prom *testprom.Server, expr string) float64 {
		found, err := prom.Instant(t.Context(), expr, time.Now())
		if err != nil || len(found) != 1 {
			t.Fatalf("%d series of %s, %v; want one", len(found), expr, err)
		}
		return found[0].Points[0].Value
	}
	holds := count(classic, "sum("+holdTimes+"_count)")
	testredis.Eventually(t, within, func() bool { return count(native, "sum(histogram_count("+holdTimes+"))") >= holds },
		fmt.Sprintf("the native histograms have the %v holds that the classic ones had before", holds))
}

// holdsShowOnce asks a Prometheus that has hold times in both kinds, as it is with
// classic histograms scraped beside native ones: no query mixes them. Since the one
// of the tests cannot scrape both from one place, it gets the classic ones through a
// proxy that does not know protobuf.
func holdsShowOnce(t *testing.T, s *scene, o testprom.Options) {
	t.Helper()
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: s.metrics})
		r.Out.Header.Set("Accept", "text/plain")
	}})
	t.Cleanup(proxy.Close)
	o.Targets = append(slices.Clone(o.Targets), proxy.Listener.Addr().String())
	prom := testprom.Start(t, o)
	for _, suffix := range []string{"", "_bucket"} {
		expr := fmt.Sprintf("sum by (class) (rate(%s%s{class=%q}[%s]))", holdTimes, suffix, class, rateInterval)
		testredis.Eventually(t, within, func() bool { return hasData(t.Context(), prom, expr) }, "both kinds: data for "+expr)
	}
	for _, b := range readBoards(t) {
		for _, p := range b.all() {
			for _, q := range p.Targets {
				if !strings.Contains(q.Expr, holdTimes) {
					continue
				}
				expr := filled(q.Expr, time.Minute)
				testredis.Eventually(t, within, func() bool { return hasData(t.Context(), prom, expr) }, "both kinds: data for "+expr)
				found, err := prom.Instant(t.Context(), expr, time.Now())
				isNative := func(s testprom.Series) bool { return s.Points[0].Histogram != nil }
				if err != nil || slices.ContainsFunc(found, isNative) {
					t.Errorf("both kinds, %s: panel %q has native histograms beside classic ones, %v: %v", b.file, p.Title, err, found)
				}
			}
		}
	}
}

// exemplarsLeadToTraces asks for exemplars as Grafana does, by the queries of panels
// that show them, and wants one with the trace in which a lock was taken.
func exemplarsLeadToTraces(t *testing.T, s *scene, prom *testprom.Server) {
	t.Helper()
	asked := 0
	for _, b := range readBoards(t) {
		for _, p := range b.all() {
			for _, q := range p.Targets {
				if !q.Exemplar {
					continue
				}
				asked++
				expr := filled(q.Expr, time.Minute)
				ok := func() bool { return s.hasExemplar(t.Context(), prom, expr) }
				testredis.Eventually(t, within, ok, fmt.Sprintf("%s: panel %q has an exemplar of an acquire for %s", b.file, p.Title, expr))
			}
		}
	}
	if asked == 0 {
		t.Error("no panel shows exemplars")
	}
}

func (s *scene) hasExemplar(ctx context.Context, prom *testprom.Server, expr string) bool {
	var found []struct {
		SeriesLabels map[string]string
		Exemplars    []struct{ Labels map[string]string }
	}
	now := time.Now()
	at := func(t time.Time) []string { return []string{strconv.FormatInt(t.Unix(), 10)} }
	err := prom.Get(ctx, "/api/v1/query_exemplars", url.Values{"query": {expr}, "start": at(now.Add(-time.Hour)), "end": at(now.Add(time.Minute))}, &found)
	if err != nil {
		s.t.Errorf("exemplars of %s: %v", expr, err)
		return true
	}
	for _, series := range found {
		if series.SeriesLabels["class"] != class || !strings.HasPrefix(series.SeriesLabels["__name__"], holdTimes) {
			continue
		}
		for _, e := range series.Exemplars {
			if _, ok := s.traced.Load(e.Labels["trace_id"]); ok {
				return true
			}
		}
	}
	return false
}
