package lock

import (
	"fmt"
	"testing"

	"github.com/locksteward/locksteward/lock/record"
)

// At most 32 classes are counted by themselves, and nothing that happened is
// left out.
func TestCountsAreBounded(t *testing.T) {
	t.Parallel()
	c := counts{classes: map[string]record.Counts{}}
	for n := range 100 {
		for range 3 {
			c.note(&Event{Kind: EventAcquired, Class: fmt.Sprint(n), Contended: n%2 == 0})
		}
		c.note(&Event{Kind: EventHeld, Class: fmt.Sprint(n), Contended: true})
		c.note(&Event{Kind: EventAcquireFailed, Class: fmt.Sprint(n)})
		c.note(&Event{Kind: EventRenewed, Class: fmt.Sprint(n)})
		c.note(&Event{Kind: EventRenewFailed, Class: fmt.Sprint(n)})
		c.note(&Event{Kind: EventLost, Class: fmt.Sprint(n)})
		c.note(&Event{Kind: EventReleased, Class: fmt.Sprint(n)})
		c.note(&Event{Kind: EventBeatFailed})
	}
	all := c.copy()
	if len(all) != record.MaxClasses+1 {
		t.Errorf("%d classes", len(all))
	}
	var sum record.Counts
	for _, n := range all {
		sum.Acquired += n.Acquired
		sum.Failed += n.Failed
		sum.Contended += n.Contended
		sum.Renewed += n.Renewed
		sum.RenewFailures += n.RenewFailures
		sum.Lost += n.Lost
	}
	if want := (record.Counts{Acquired: 300, Failed: 200, Contended: 250, Renewed: 100, RenewFailures: 100, Lost: 100}); sum != want {
		t.Errorf("%+v, want %+v", sum, want)
	}
	if want := (record.Counts{Acquired: 3, Failed: 2, Contended: 1, Renewed: 1, RenewFailures: 1, Lost: 1}); all["31"] != want {
		t.Errorf("class 31: %+v", all["31"])
	}
}
