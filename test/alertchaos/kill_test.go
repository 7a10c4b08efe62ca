package alertchaos_test

import (
	"testing"
)

// each is a message of its own for each finding, at once; together are groups that
// wait for others.
const (
	each     = "{by: [fingerprint], wait: 0s, interval: 0s}"
	together = "{by: [target, class, rule], wait: 200ms, interval: 500ms}"
)

// Agents are killed 30 times (1,000 in make chaos) while locks break and heal,
// receivers flap and, in one of the runs, the disk fills: nothing is lost, nothing is
// out of order, and what comes twice is the same message.
// fault: 77
func TestKillsLoseNoAlert(t *testing.T) {
	t.Parallel()
	runs := map[string]settings{
		"each by itself":  {grouping: each},
		"in groups":       {grouping: together},
		"and a full disk": {grouping: "{by: [class], wait: 0s, interval: 100ms}", disk: true},
	}
	for name, s := range runs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, s)
			b.play((*kills + len(runs) - 1) / len(runs))
			for _, e := range b.ears {
				v := judge(e.name, b.committed, e.got())
				t.Logf("%s, %d kills: %s; %d requests", e.name, b.killed, v, len(e.got()))
				if len(v.lost) > 0 || len(v.suppressed) > 0 || len(v.early) > 0 || len(v.order) > 0 || len(v.otherID) > 0 || len(v.otherBytes) > 0 {
					t.Errorf("%s: lost %v, held back for ever %v, resolves before their fires %v, out of order %v, under several ids %v, with several contents %v",
						e.name, v.lost, v.suppressed, v.early, v.order, v.otherID, v.otherBytes)
				}
				if len(v.unwritten) > 0 && !b.disk.small {
					t.Errorf("%s was notified of what no store has: %v", e.name, v.unwritten)
				}
				if v.events < 10 || v.copies > 5*b.killed {
					t.Errorf("%s: %d events, %d copies: too few or too many to show anything", e.name, v.events, v.copies)
				}
			}
		})
	}
}

// The control: the same agent, with a queue that a kill empties, loses alerts.
func TestControlWithoutOutboxLosesAlerts(t *testing.T) {
	t.Parallel()
	b := newBed(t, settings{grouping: each, forgetful: true})
	b.play(8)
	lost := 0
	for _, e := range b.ears {
		v := judge(e.name, b.committed, e.got())
		wrong := differs(b.world.truth(), latest(e.got()))
		t.Logf("%s, %d kills: %s; of %d locks it does not know how they are", e.name, b.killed, v, len(wrong))
		lost += len(v.lost) + len(v.suppressed)
	}
	if lost == 0 {
		t.Error("a queue in memory loses nothing: the kills come at moments that show nothing")
	}
}
