package scanner

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// seenLast is a hold that was last seen, and first, at node.
func seenLast(key, node string, at time.Duration) *entry {
	e := begin(lockState{key: key, traits: &traits{node: node}, at: micros(moment(at))})
	e.expireAt = moment(time.Hour).UnixMilli()
	return e
}

// Which of the locks that are gone count as lost with a failover, for each way in
// which one server takes over from another.
func TestFailoverTakesWhatItsHeirNeverHad(t *testing.T) {
	t.Parallel()
	const run = " run_id:r role:master"
	old := func(at time.Duration, offset int) string {
		return fmt.Sprintf("uptime_in_seconds:900000 master_replid:one master_repl_offset:%d server_time_usec:%d", offset, micros(moment(at))) + run
	}
	heir := func(second string, offset int) string {
		return fmt.Sprintf("uptime_in_seconds:900000 master_replid:two master_replid2:%s second_repl_offset:%d", second, offset) + run + "2"
	}
	for name, tc := range map[string]struct {
		addr, info string // of the master afterwards
		until      bool   // the agent knows by the address that the data is another
		want       string
	}{
		"the heir had all of the last sweep":  {addr: "b", info: heir("one", 501), want: "renewed young"},
		"the heir had less":                   {addr: "b", info: heir("one", 500), want: "older renewed young"},
		"the heir followed another":           {addr: "b", info: heir("three", 501), want: "older renewed young"},
		"the heir does not say":               {addr: "b", info: "run_id:r2 role:master uptime_in_seconds:900000", want: "older renewed young"},
		"behind the same address":             {addr: "a", info: heir("one", 501), until: true, want: "renewed young"},
		"restarted without its data":          {addr: "a", info: "run_id:r2 role:master uptime_in_seconds:1 master_replid:four", until: true, want: "older renewed young"},
		"the same data, at which all is ours": {addr: "a", info: old(time.Minute, 700)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, table := newFacts(), newTable(locksteward.Target{Name: "t"})
			before := answer("a", old(10*time.Second, 500))
			observed(&f.servers, round(moment(15*time.Second), false), []source.Part{before}, nil)
			now := answer(tc.addr, tc.info)
			until := f.servers.changedHands(&now, nil)
			if (until != 0) != tc.until {
				t.Fatalf("another's data until %d", until)
			}
			renewed := seenLast("renewed", "a", 5*time.Second)
			renewed.lastRenewal = micros(moment(12 * time.Second))
			over := seenLast("over", "a", 12*time.Second)
			over.expireAt = moment(30 * time.Second).UnixMilli()
			for _, e := range []*entry{
				seenLast("young", "a", 12*time.Second), seenLast("older", "a", 5*time.Second), renewed, over,
				seenLast("moved", "c", 12*time.Second), // of another master, whose slot moved
			} {
				table.endsAt(e, tc.addr, micros(moment(time.Minute)), until)
			}
			// A sweep that did not come to the new master.
			f.servers.settleFailovers(moment(20*time.Second), table.takeFailoverSuspects)
			sweep := round(moment(time.Minute), false)
			observed(&f.servers, sweep, []source.Part{now}, nil)
			f.servers.settleFailovers(sweep.At, table.takeFailoverSuspects)
			var got []string
			for _, e := range f.servers.events {
				if got = append(got, e.Keys...); e.Locks != len(e.Keys) {
					t.Errorf("%d locks, named %q", e.Locks, e.Keys)
				}
			}
			// Where the address stays, whose slot moved cannot be known.
			got = slices.DeleteFunc(got, func(key string) bool { return key == "moved" && tc.addr == "a" })
			if said := strings.Join(got, " "); said != tc.want {
				t.Errorf("lost %q, want %q", said, tc.want)
			}
			if len(table.failoverSuspects) != 0 {
				t.Errorf("%d are kept", len(table.failoverSuspects))
			}
		})
	}
}

// All are counted, and some are named.
func TestFailoverNamesSome(t *testing.T) {
	t.Parallel()
	f, table := newFacts(), newTable(locksteward.Target{Name: "t"})
	observed(&f.servers, round(moment(0), false), []source.Part{answer("a", "run_id:r role:master uptime_in_seconds:900000")}, nil)
	sweep := round(moment(time.Minute), false)
	observed(&f.servers, sweep, []source.Part{answer("b", "run_id:r2 role:master uptime_in_seconds:900000")}, nil)
	for i := range 3 * maxFailoverKeys {
		table.endsAt(seenLast(fmt.Sprintf("lock:%02d", 99-i), "a", 0), "b", micros(moment(time.Minute)), 0)
	}
	f.servers.settleFailovers(sweep.At, table.takeFailoverSuspects)
	text, err := f.encode()
	if err != nil {
		t.Fatal(err)
	}
	again := newFacts() // as after a restart of the agent
	if err := again.decode(text, origin); err != nil {
		t.Fatal(err)
	}
	if e := again.servers.events; len(e) != 1 || e[0].Locks != 3*maxFailoverKeys || len(e[0].Keys) != maxFailoverKeys || e[0].Keys[0] != "lock:70" {
		t.Errorf("%+v", e)
	}
}
