package lock_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
)

// BenchmarkPair is one uncontended acquire and release, metadata and fence
// included; BenchmarkBareScripts two script calls that do nothing, the floor.
func BenchmarkPair(b *testing.B) {
	c, err := lock.New(testredis.Start(b).Client(b), lock.Options{App: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // A benchmark.
	b.ReportAllocs()
	for b.Loop() {
		h, err := c.Acquire(b.Context(), "k", lease())
		if err != nil {
			b.Fatal(err)
		}
		if err := h.Release(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBareScripts(b *testing.B) {
	rdb := testredis.Start(b).Client(b)
	script := redis.NewScript("return 1")
	b.ReportAllocs()
	for b.Loop() {
		for range 2 {
			if err := script.Run(b.Context(), rdb, []string{"k"}, "a").Err(); err != nil {
				b.Fatal(err)
			}
		}
	}
}
