package store_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/store"
)

// storm are findings that fire, with the events of two receivers, in groups.
func storm(n, from, groups int) ([]locksteward.Finding, []locksteward.FindingEvent) {
	findings, events := make([]locksteward.Finding, n), make([]locksteward.FindingEvent, n)
	for i := range n {
		group := fmt.Sprintf("target=orders,class=class%d,rule=ttl/none", i%groups)
		e := fires(fmt.Sprint("event-", from+i), fmt.Sprint("lock:orders:", from+i),
			locksteward.Recipient{Receiver: "ops", Group: group, Wait: 10 * time.Second}, locksteward.Recipient{Receiver: "chat", Group: group, Wait: 10 * time.Second})
		e.Finding.Evidence = []locksteward.Message{
			locksteward.Literal("no expiry for 61s", "61s 以来没有过期时间"), locksteward.Literal("type string, 36 bytes", "类型 string，36 字节"), locksteward.Literal("seen in 3 sweeps", "在 3 次扫描中看到"),
		}
		e.Finding.Cause = locksteward.Literal("SETNX without EXPIRE, or PERSIST", "SETNX 之后没有 EXPIRE")
		e.Finding.Remedy = locksteward.Literal("set the expiry in the same command", "在同一条命令中设置过期时间")
		findings[i], events[i] = e.Finding, e
	}
	return findings, events
}

// BenchmarkEvents accepts batches of changed findings, each event for two
// receivers: at least 5,000 a second in groups of 100 and more. A batch of 10 is no
// group: each pays for a commit of its own, and is only reported.
func BenchmarkEvents(b *testing.B) {
	places := map[string]func(*testing.B) *store.Store{
		"sqlite":   func(b *testing.B) *store.Store { return openFile(b) },
		"postgres": func(b *testing.B) *store.Store { return openAt(b, testpg.Database(b)) },
	}
	for name, open := range places {
		for _, size := range []int{10, 100, 1000} {
			b.Run(fmt.Sprintf("%s/batch=%d", name, size), func(b *testing.B) {
				s := open(b)
				from := 0
				for b.Loop() {
					b.StopTimer()
					findings, events := storm(size, from, 50)
					from += size
					b.StartTimer()
					if err := s.UpdateFindings(b.Context(), "orders", slices.Values(findings), store.Outgoing{Events: events}); err != nil {
						b.Fatal(err)
					}
				}
				rate := float64(size*b.N) / b.Elapsed().Seconds()
				b.ReportMetric(rate, "events/s")
				if size >= 100 && rate < 5000 {
					b.Errorf("%.0f events a second were accepted, want at least 5000", rate)
				}
			})
		}
	}
}

// BenchmarkStorm is one sweep that finds 100,000 things, and telling all of them.
func BenchmarkStorm(b *testing.B) {
	const n = 100_000 // as many as a large fleet has locks
	findings, events := storm(n, 0, 50)
	for b.Loop() {
		b.StopTimer()
		s := openFile(b)
		stop, peak := peakHeap()
		b.StartTimer()
		began := time.Now()
		if err := s.SaveFindings(b.Context(), "orders", slices.Values(findings), store.Outgoing{Events: events}); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(began).Seconds(), "s/write")
		close(stop)
		b.ReportMetric(float64(<-peak)/(1<<20), "MiB")
		if err := s.Exec(b.Context(), `UPDATE alert_groups SET due_at = 1`); err != nil {
			b.Fatal(err)
		}
		began = time.Now()
		for notified := 0; notified < n; {
			_, err := s.Flush(b.Context(), "ops", "", 5, 1000, func(due []locksteward.DueGroup) (out []locksteward.FlushedGroup, messages []locksteward.Notification) {
				for _, g := range due {
					f, m := notifyAll(g)
					f.Group, notified = g.Group, notified+len(f.Notified)
					m[0].ID = fmt.Sprint(g.Group, notified)
					out, messages = append(out, f), append(messages, m...)
				}
				return out, messages
			})
			if err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(time.Since(began).Seconds(), "s/flush")
		closeStore(b, s)
	}
}

// peakHeap measures how much the heap grows until stop is closed.
func peakHeap() (stop chan struct{}, peak chan uint64) {
	stop, peak = make(chan struct{}), make(chan uint64, 1)
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	base := m.HeapAlloc
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		var most uint64
		for {
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
			select {
			case <-stop:
				peak <- most - min(most, base)
				return
			case <-tick.C:
			}
		}
	}()
	return stop, peak
}

// BenchmarkOneOrdering delivers 1,000 large messages that must arrive in their order,
// as a storm of one group makes them.
func BenchmarkOneOrdering(b *testing.B) {
	const n = 1000
	for b.Loop() {
		b.StopTimer()
		s := openFile(b)
		messages := make([]locksteward.Notification, n)
		for i := range messages {
			messages[i] = message(fmt.Sprint("m", i), "one group")
			messages[i].Body = make([]byte, 150<<10)
		}
		if err := s.SaveFindings(b.Context(), "orders", nil, store.Outgoing{Notifications: messages}); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		for range n {
			if _, waits, err := s.NextDue(b.Context(), messages[0].Receiver); err != nil || !waits {
				b.Fatal(waits, err)
			}
			got, err := s.Claim(b.Context(), messages[0].Receiver, time.Minute, 4)
			if err != nil || len(got) != 1 {
				b.Fatal(len(got), err)
			}
			if err := s.Delivered(b.Context(), got[0]); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}
