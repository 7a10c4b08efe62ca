package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// shownMetrics are the beginnings of the series that the report shows.
var shownMetrics = []string{
	"locksteward_locks{",
	"locksteward_locks_without_ttl{",
	"locksteward_findings{",
	"locksteward_releases_total{",
	"locksteward_notifications_total{",
	"locksteward_sweep_duration_seconds_count",
}

// maxMetrics bounds what is read of a scrape.
const maxMetrics = 16 << 20

// metrics scrapes the agent and returns the series worth showing, those at 0
// left out.
func (a *agentRun) metrics(ctx context.Context) ([]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.metricsURL(), nil)
	if err != nil {
		return nil, fmt.Errorf("scrape metrics: %w", err)
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("scrape metrics: %w", err)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxMetrics))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, fmt.Errorf("scrape metrics: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("scrape metrics: %s answers %s", a.metricsURL(), resp.Status)
	}
	var out []string
	for _, start := range shownMetrics {
		for series := range strings.Lines(string(body)) {
			series = strings.TrimSpace(series)
			if strings.HasPrefix(series, start) && !strings.HasSuffix(series, " 0") {
				out = append(out, series)
			}
		}
	}
	return out, nil
}
