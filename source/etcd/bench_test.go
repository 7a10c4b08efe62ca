package etcdsource_test

import (
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// A sweep of 10,000 locks, each with a lease of its own.
func BenchmarkSweep10k(b *testing.B) {
	store := newStore(b)
	for i := range 10_000 {
		lease, err := store.client.Grant(b.Context(), 3600)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := store.client.Put(b.Context(), fmt.Sprintf("lock:%d/%x", i, lease.ID), "", clientv3.WithLease(lease.ID)); err != nil {
			b.Fatal(err)
		}
	}
	s := scan(b, store.Source(b), "lock:*")
	for b.Loop() {
		began := time.Now()
		if seen := locks(b, s); len(seen) != 10_000 {
			b.Fatalf("%d locks", len(seen))
		}
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms/sweep")
	}
}
