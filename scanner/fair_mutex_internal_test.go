package scanner

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestFairMutexIsInOrder: a goroutine that yields goes on after all that waited, and before
// those that came later.
func TestFairMutexIsInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		order := newFairMutex()
		var got []int
		come := func(n int) {
			go func() {
				order.Lock()
				defer order.Unlock()
				got = append(got, n)
				time.Sleep(time.Second)
			}()
			synctest.Wait()
		}
		order.Lock()
		order.yield() // nobody waits
		for n := range 3 {
			come(n)
		}
		go func() {
			time.Sleep(time.Second / 2)
			come(4)
		}()
		order.yield()
		got = append(got, 3)
		order.Unlock()
		time.Sleep(10 * time.Second)
		order.Lock() // free again
		defer order.Unlock()
		if !slices.Equal(got, []int{0, 1, 2, 3, 4}) {
			t.Errorf("in the order of %v", got)
		}
	})
}
