package alert

import (
	"fmt"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
)

// In a storm nothing is left out in silence: what is listed, counted and held back is
// all that happened, for machines and for people.
// fault: 84
func TestWhatAStormTellsAddsUp(t *testing.T) {
	t.Parallel()
	const many = 5000
	d := locksteward.DueGroup{Group: "g", Now: time.Now()}
	silenced := 0
	for i := range many {
		c := eventOfTransition(fire(fmt.Sprint("lock:order:", i), uint64(i+1)))
		c.Seq = int64(i + 1)
		if i%7 == 0 {
			c.Finding.Class = "silent"
			silenced++
		}
		d.Waiting = append(d.Waiting, locksteward.PendingEvent{FindingEvent: c})
	}
	hold := func(f locksteward.Finding) string {
		if f.Class == "silent" {
			return SuppressedSilence + ":s1"
		}
		return ""
	}
	for name, how := range map[string]traits{"machine": {cap: 100}, "people": {people: true, cap: 10}} {
		a := newWriter(Config{}.withDefaults(), Receiver{Name: name, Lang: "en", KeyNames: KeyNamesFull}, how, Hooks{})
		c := &composer{writer: a, heldBy: hold}
		flushed, messages := c.compose([]locksteward.DueGroup{d})
		listed, omitted := 0, 0
		for _, m := range messages {
			p, err := payloadOf(m.Body)
			if err != nil || len(p.Findings) > how.cap {
				t.Fatalf("%s: %d findings in a message, %v", name, len(p.Findings), err)
			}
			counted := 0
			for _, n := range p.Counts {
				counted += n.Findings
			}
			if counted != len(p.Findings)+p.Omitted {
				t.Errorf("%s: counts sum up to %d, and %d are listed and %d omitted", name, counted, len(p.Findings), p.Omitted)
			}
			listed, omitted = listed+len(p.Findings), omitted+p.Omitted
		}
		if listed+omitted+len(flushed[0].Held) != many || len(flushed[0].Held) != silenced || omitted != c.omitted {
			t.Errorf("%s: %d listed, %d omitted, %d held back of %d", name, listed, omitted, len(flushed[0].Held), many)
		}
		if how.people && len(messages) != 1 {
			t.Errorf("people get %d messages", len(messages))
		}
	}
}
