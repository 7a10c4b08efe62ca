package exporter_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/exporter"
)

// fleet returns a sweep with n locks over 20 classes, a third of them ours.
func fleet(n int) ([]string, locksteward.Sweep) {
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("class%02d", i))
	}
	s := sweep(0)
	for i := range n {
		class := names[i%len(names)]
		key := fmt.Sprintf("%s:%d", class, i)
		if i%3 == 0 {
			s.Locks = append(s.Locks, lock(class, key, claimed(key, t0.Add(-time.Minute), locksteward.Claim{Renewals: 3})))
		} else {
			s.Locks = append(s.Locks, lock(class, key))
		}
	}
	return names, s
}

func BenchmarkScrape100kLocks(b *testing.B) {
	names, s := fleet(100_000)
	e := newExporter(b, exporter.Config{}, names...)
	e.ObserveSweep(s)
	url := "http://" + serve(b, exporter.Config{}, e, readyNow) + "/metrics"
	c := newClient(b, nil)
	for b.Loop() {
		res, err := c.Get(url)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			b.Fatal(err)
		}
		if err := res.Body.Close(); err != nil {
			b.Fatal(err)
		}
		if res.StatusCode != http.StatusOK {
			b.Fatal(res.Status)
		}
	}
}

func BenchmarkScrape500Classes(b *testing.B) {
	var names []string
	for i := range 500 {
		names = append(names, fmt.Sprintf("class%03d", i))
	}
	e := newExporter(b, exporter.Config{}, names...)
	s := sweep(0)
	for _, name := range names {
		s.Locks = append(s.Locks, many(name, 20)...)
	}
	e.ObserveSweep(s)
	for b.Loop() {
		if _, err := e.Gatherer().Gather(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkObserveSweep100kLocks(b *testing.B) {
	names, s := fleet(100_000)
	e := newExporter(b, exporter.Config{}, names...)
	before := heap()
	e.ObserveSweep(s)
	perLock := float64(heap()-before) / float64(len(s.Locks))
	for b.Loop() {
		e.ObserveSweep(s)
	}
	b.ReportMetric(perLock, "B/lock")
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkScrapeCompressed is a scrape of 100,000 locks in 140 classes by HTTP,
// compressed: as it is, and after each push of a watch, when nothing is at hand that was
// built before. At most 20 ms in the median, with the time of the client.
func BenchmarkScrapeCompressed(b *testing.B) {
	names, s := fleet(100_000)
	for i := range 120 {
		names = append(names, fmt.Sprintf("more%03d", i))
		s.Locks = append(s.Locks, many(names[len(names)-1], 1)...)
	}
	e := newExporter(b, exporter.Config{}, names...)
	e.ObserveSweep(s)
	e.SetReleaseEnabled("m", true)
	url := "http://" + serve(b, exporter.Config{}, e, readyNow) + "/metrics"
	c := newClient(b, nil)
	reported := sweep(1, s.Locks[0]).Update()
	for _, pushed := range []bool{false, true} {
		b.Run(fmt.Sprintf("pushed=%t", pushed), func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				if pushed {
					e.ObserveWatch(reported)
				}
				began := time.Now()
				req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url, nil)
				if err != nil {
					b.Fatal(err)
				}
				req.Header.Set("Accept-Encoding", "gzip") // as Prometheus asks; what it unpacks is its time
				res, err := c.Do(req)
				if err != nil {
					b.Fatal(err)
				}
				_, err = io.Copy(io.Discard, res.Body)
				if err := errors.Join(err, res.Body.Close()); err != nil || res.StatusCode != http.StatusOK {
					b.Fatal(res.Status, err)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(len(scrape(b, e))), "series")
			p50 := took[len(took)/2]
			b.ReportMetric(p50.Seconds()*1000, "p50-ms")
			b.ReportMetric(took[len(took)*99/100].Seconds()*1000, "p99-ms")
			if p50 > 20*time.Millisecond {
				b.Errorf("a scrape took %s in the median, want at most 20ms", p50)
			}
		})
	}
}
