package exporter_test

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
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

func BenchmarkScrapeAtMaxSeries(b *testing.B) {
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
