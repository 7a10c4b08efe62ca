package lockprom

import (
	"crypto/rand"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/locksteward/locksteward/lock"
)

// hold is an uncontended hold that was renewed once, and one look at a held lock.
func hold(w *watch, id, trace string) {
	w.observe(lock.Event{Kind: lock.EventAcquired, Class: "orders", ID: id, Took: time.Millisecond, Trace: trace})
	w.observe(lock.Event{Kind: lock.EventRenewed, Class: "orders", ID: id, Took: time.Millisecond})
	w.observe(lock.Event{Kind: lock.EventReleased, Class: "orders", ID: id, Took: 20 * time.Millisecond, Trace: trace})
}

// TestEventsAllocateNothing is the promise of the package comment.
func TestEventsAllocateNothing(t *testing.T) {
	unsampled := parent[:len(parent)-2] + "00"
	failures := []lock.Event{
		{Kind: lock.EventHeld, Class: "orders", Contended: true, Err: &lock.HeldError{}},
		{Kind: lock.EventAcquireFailed, Class: "orders", Err: fmt.Errorf("acquire: %w", lock.ErrUnknown)},
		{Kind: lock.EventAcquireFailed, Class: "orders", Err: fmt.Errorf("acquire: %w", &lock.ServerError{Code: lock.CodeOOM})},
		{Kind: lock.EventRenewFailed, Class: "orders", Err: fmt.Errorf("renew: %w", lock.ErrUnknown)},
		{Kind: lock.EventReentered, Class: "orders"},
		{Kind: lock.EventCleaned, Class: "orders"},
		{Kind: lock.EventBeatFailed},
		{Kind: lock.EventPushFailed},
	}
	c := New()
	w := c.newWatch()
	once := func() {
		hold(w, "id", unsampled)
		for _, e := range failures {
			w.observe(e)
		}
	}
	once() // the class, the native buckets
	if n := testing.AllocsPerRun(1000, once); n != 0 {
		t.Errorf("%g allocations for %d events, want 0", n, 3+len(failures))
	}
	for i := range DefaultMaxClasses {
		w.observe(lock.Event{Kind: lock.EventRenewed, Class: fmt.Sprint(i)})
	}
	if n := testing.AllocsPerRun(1000, func() { w.observe(lock.Event{Kind: lock.EventRenewed, Class: "one too many"}) }); n != 0 {
		t.Errorf("%g allocations for an event of a folded class, want 0", n)
	}
}

// BenchmarkHold is three events: acquired, renewed, released.
func BenchmarkHold(b *testing.B) {
	for name, trace := range map[string]string{"untraced": "", "sampled": parent} {
		b.Run(name, func(b *testing.B) {
			w := New().newWatch()
			b.ReportAllocs()
			for b.Loop() {
				hold(w, "4bf92f3577b34da6a3ce929d0e", trace)
			}
		})
	}
}

func BenchmarkHoldParallel(b *testing.B) {
	w := New().newWatch()
	var next atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		id := fmt.Sprintf("hold-%c", 'A'+next.Add(1))
		for pb.Next() {
			hold(w, id, "")
		}
	})
}

func BenchmarkHeld(b *testing.B) {
	w := New().newWatch()
	e := lock.Event{Kind: lock.EventHeld, Class: "orders", Took: time.Millisecond, Contended: true, Err: &lock.HeldError{}}
	b.ReportAllocs()
	for b.Loop() {
		w.observe(e)
	}
}

// BenchmarkHoldAmongMany has 10,000 other holds, which come and go.
func BenchmarkHoldAmongMany(b *testing.B) {
	w := New().newWatch()
	ids := make([]string, 20_000)
	for i := range ids {
		ids[i] = rand.Text()
	}
	begin := func(i int) {
		w.observe(lock.Event{Kind: lock.EventAcquired, Class: "orders", ID: ids[i%len(ids)], Took: time.Millisecond})
	}
	for i := range len(ids) / 2 {
		begin(i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		begin(i + len(ids)/2)
		w.observe(lock.Event{Kind: lock.EventReleased, Class: "orders", ID: ids[i%len(ids)], Took: time.Second})
	}
}
