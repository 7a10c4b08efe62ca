package testprom

import (
	"context"
	"encoding/json"
	"math"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// Series is one series of the answer to a query.
type Series struct {
	Labels map[string]string
	Points []Point // in the order of time
}

// Point is a value at a time.
type Point struct {
	At time.Time
	// Value is not a number where the point is a histogram.
	Value float64
	// Histogram is nil where the point is a number.
	Histogram *Histogram
}

// Histogram is a native one, as far as tests ask for it.
type Histogram struct{ Count, Sum float64 }

// Instant returns what a query gives at a time, one point each.
func (s *Server) Instant(ctx context.Context, query string, at time.Time) ([]Series, error) {
	return s.query(ctx, "/api/v1/query", url.Values{"query": {query}, "time": {at.Format(time.RFC3339Nano)}})
}

// Range returns what a query gives from one time to another.
func (s *Server) Range(ctx context.Context, query string, from, to time.Time, step time.Duration) ([]Series, error) {
	return s.query(ctx, "/api/v1/query_range", url.Values{
		"query": {query}, "start": {from.Format(time.RFC3339Nano)}, "end": {to.Format(time.RFC3339Nano)}, "step": {strconv.FormatFloat(step.Seconds(), 'f', 3, 64)},
	})
}

func (s *Server) query(ctx context.Context, path string, params url.Values) ([]Series, error) {
	var data struct {
		Result []struct {
			Metric     map[string]string
			Value      *point
			Values     []point
			Histogram  *histogramPoint
			Histograms []histogramPoint
		}
	}
	if err := s.Get(ctx, path, params, &data); err != nil {
		return nil, err
	}
	var out []Series
	for _, r := range data.Result {
		series := Series{Labels: r.Metric}
		if r.Value != nil {
			r.Values = append(r.Values, *r.Value)
		}
		for _, p := range r.Values {
			series.Points = append(series.Points, Point(p))
		}
		if r.Histogram != nil {
			r.Histograms = append(r.Histograms, *r.Histogram)
		}
		for _, p := range r.Histograms {
			series.Points = append(series.Points, Point(p))
		}
		slices.SortFunc(series.Points, func(a, b Point) int { return a.At.Compare(b.At) })
		out = append(out, series)
	}
	return out, nil
}

// point is a Point as Prometheus writes it: [seconds, "value"].
type point Point

// UnmarshalJSON reads it.
func (p *point) UnmarshalJSON(raw []byte) error {
	var seconds float64
	var value string
	if err := json.Unmarshal(raw, &[]any{&seconds, &value}); err != nil {
		return err
	}
	p.At = time.UnixMilli(int64(seconds * 1000))
	var err error
	p.Value, err = strconv.ParseFloat(value, 64)
	return err
}

// histogramPoint is a Point as Prometheus writes it: [seconds, {"count": "n", ...}].
type histogramPoint Point

// UnmarshalJSON reads it.
func (p *histogramPoint) UnmarshalJSON(raw []byte) error {
	var seconds float64
	p.Value, p.Histogram = math.NaN(), &Histogram{}
	written := struct {
		Count *float64 `json:"count,string"`
		Sum   *float64 `json:"sum,string"`
	}{&p.Histogram.Count, &p.Histogram.Sum}
	if err := json.Unmarshal(raw, &[]any{&seconds, &written}); err != nil {
		return err
	}
	p.At = time.UnixMilli(int64(seconds * 1000))
	return nil
}
