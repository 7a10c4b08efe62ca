package retry_test

import (
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward/lock/internal/retry"
)

// B30: all goroutines draw from the same backoff, at once and in its bounds.
func TestBackoffIsForManyGoroutines(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	start := make(chan struct{})
	for range 8 {
		wg.Go(func() {
			<-start
			for n := range 2000 {
				full := min(300*time.Millisecond, 10*time.Millisecond<<min(n, 10))
				if d := retry.Backoff(n, 10*time.Millisecond, 300*time.Millisecond); d < full/2 || d > full {
					t.Errorf("retry %d after %s, want %s to %s", n, d, full/2, full)
					return
				}
			}
		})
	}
	close(start)
	wg.Wait()
}
