package alert

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// hangsUntil is a receiver that hangs until it opens.
type hangsUntil struct {
	fake
	open time.Time
}

func (h *hangsUntil) send(ctx context.Context, out outgoing) error {
	if time.Now().Before(h.open) {
		ctx, cancel := context.WithTimeout(ctx, DefaultTimeout)
		defer cancel()
		<-ctx.Done()
		return transportError("https://h", ctx.Err())
	}
	return h.fake.send(ctx, out)
}

// A receiver that hangs for ten minutes delays no other for a moment, and is notified of
// everything when it is back.
// fault: 80
func TestAReceiverThatHangsTenMinutesDelaysNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const hangs = 10 * time.Minute
		start := time.Now()
		slow, alive := &hangsUntil{open: start.Add(hangs)}, &fake{}
		d := postOf(t, Hooks{}, slow, alive)
		stop := d.run()
		n := uint64(0)
		for ; time.Since(start) < hangs; n++ {
			d.notify(fire(fmt.Sprint("k", n), n))
			synctest.Wait()
			if got := len(alive.events()); got != int(n)+1 {
				t.Fatalf("after %s: %d of %d events", time.Since(start), got, n+1)
			}
			time.Sleep(5 * time.Second)
		}
		if got := len(slow.events()); got != 0 {
			t.Errorf("the one that hangs took %d events", got)
		}
		time.Sleep(circuitCap + DefaultTimeout + reconcileSoon)
		synctest.Wait()
		if got := len(slow.events()); got != int(n) {
			t.Errorf("the one that is back knows of %d of %d events", got, n)
		}
		stop()
	})
}
