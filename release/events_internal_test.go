package release

import (
	"testing"
	"time"

	"github.com/locksteward/locksteward"
)

// TestEveryEventHasALine: what people are told of is all in the lines, whatever number of
// entries there are beside it.
func TestEveryEventHasALine(t *testing.T) {
	t.Parallel()
	at := time.Now()
	r := locksteward.Request{ID: "r-1", Evidence: locksteward.Evidence{Target: "redis", Key: "lock:order:1"}}
	one := entry(at, "ana", ActionApprove, r, "x", detail{EvidenceHash: "h"})
	events := []Event{
		eventOf(EventSelfApproved, at, "ana", r, "by herself"), eventOf(EventAuto, at, "ana", r, "alone"),
		{ID: "breaker/redis", Kind: EventBreaker, At: at, Actor: AgentName, Target: "redis", Text: "many"},
	}
	for _, c := range []change{
		{events: events},
		{entries: []locksteward.Entry{one}, events: events},
		{entries: []locksteward.Entry{one, one, one, one}, events: events},
	} {
		lines := c.lines()
		if want := max(len(c.entries), len(c.events)); len(lines) != want {
			t.Fatalf("%d lines, want %d", len(lines), want)
		}
		var got []string
		for _, line := range lines {
			if e, ok := EventOf(line, r); ok {
				got = append(got, e.ID+" "+e.Text+" "+e.Target)
			}
		}
		if len(got) != 3 || got[0] != "r-1/release.self_approved by herself redis" || got[1] != "r-1/release.auto alone redis" || got[2] != "breaker/redis many redis" {
			t.Errorf("beside %d entries the lines tell of %q", len(c.entries), got)
		}
		if len(c.entries) > 0 && string(c.entries[0].Detail) != string(one.Detail) {
			t.Errorf("the entries were written over: %s", c.entries[0].Detail)
		}
	}
}
