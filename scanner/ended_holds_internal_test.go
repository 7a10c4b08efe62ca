package scanner

import (
	"fmt"
	"testing"

	"github.com/locksteward/locksteward"
)

// Which holds are informed to be back: those of a token that nobody else has, whose end
// was seen on another line of data, once.
func TestHoldIsBackOnOlderDataAlone(t *testing.T) {
	t.Parallel()
	strong := &traits{node: "a", identity: locksteward.IdentityStrong}
	for name, tc := range map[string]struct {
		hold  lockState
		next  lockState
		lines [2]string
		want  int
	}{
		"another line":       {lockState{traits: strong, digest: "d"}, lockState{traits: strong, digest: "d"}, [2]string{"one", "two"}, 1},
		"nothing happened":   {lockState{traits: strong, digest: "d"}, lockState{traits: &traits{node: "b", identity: locksteward.IdentityStrong}, digest: "d"}, [2]string{"one", "two"}, 0},
		"the same line":      {lockState{traits: strong, digest: "d"}, lockState{traits: strong, digest: "d"}, [2]string{"one", "one"}, 0},
		"no line before":     {lockState{traits: strong, digest: "d"}, lockState{traits: strong, digest: "d"}, [2]string{"", "two"}, 0},
		"the next hold":      {lockState{traits: strong, digest: "d"}, lockState{traits: strong, digest: "e"}, [2]string{"one", "two"}, 0},
		"not read in full":   {lockState{traits: strong}, lockState{traits: strong}, [2]string{"one", "two"}, 0},
		"another claim":      {lockState{traits: strong, digest: "d", claim: &locksteward.Claim{ID: "1"}}, lockState{traits: strong, digest: "d", claim: &locksteward.Claim{ID: "2"}}, [2]string{"one", "two"}, 0},
		"a token used again": {lockState{traits: &traits{node: "a", identity: locksteward.IdentityLineage}, digest: "d"}, lockState{traits: strong, digest: "d"}, [2]string{"one", "two"}, 0},
		"a shared token": {
			lockState{traits: &traits{node: "a", identity: locksteward.IdentityStrong, sharedToken: true}, digest: "d"},
			lockState{traits: strong, digest: "d"},
			[2]string{"one", "two"},
			0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := newTable(locksteward.Target{Name: "t"})
			table.onLine("a", tc.lines[0])
			tc.hold.key, tc.next.key = "lock:a", "lock:a"
			table.rememberEnd(begin(tc.hold), "a")
			now := serverSeen{replID: tc.lines[1], at: origin}
			v := servers{nodes: map[string]serverSeen{"a": now, "b": now}, events: []locksteward.ServerEvent{
				{Kind: locksteward.ServerRestarted, Node: "a", After: origin, At: origin},
				{Kind: locksteward.ServerFlushed, Node: "a", After: origin, At: origin},
			}}
			for range 2 {
				table.isBack(&tc.next)
				v.settleFailovers(origin, table.takeFailoverSuspects)
			}
			if e := v.events[0]; e.Back != tc.want || len(e.BackKeys) != tc.want {
				t.Errorf("%+v, want %d", e, tc.want)
			}
		})
	}
	// The last ends are remembered, not all.
	table := newTable(locksteward.Target{Name: "t"})
	table.onLine("a", "one")
	for i := range 3 * maxEnded {
		table.rememberEnd(begin(lockState{key: fmt.Sprint(i), traits: strong, digest: "d"}), "a")
	}
	for i := range 3 * maxEnded {
		table.isBack(&lockState{key: fmt.Sprint(i), traits: strong, digest: "d"})
	}
	if n := len(table.failoverSuspects); n < maxEnded || n > 2*maxEnded {
		t.Fatalf("%d ends are remembered", n)
	}
	if last := table.failoverSuspects[len(table.failoverSuspects)-1]; last.key != fmt.Sprint(3*maxEnded-1) || last.ended != "one" {
		t.Errorf("the last is %+v", last)
	}
}
