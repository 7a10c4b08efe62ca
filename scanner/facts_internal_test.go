package scanner

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

var origin = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func moment(d time.Duration) time.Time { return origin.Add(d) }

// answer is what a sweep found of one master, by fields in the names of INFO.
func answer(addr string, fields string) source.Part {
	reported := map[string]string{}
	for field := range strings.FieldsSeq(fields) {
		name, value, _ := strings.Cut(field, ":")
		reported[name] = value
	}
	number := func(name string) int64 {
		if n, err := strconv.ParseInt(reported[name], 10, 64); err == nil {
			return n
		}
		return -1
	}
	former := strings.TrimLeft(reported["master_replid2"], "0")
	replica := reported["role"] == "slave"
	server := source.Server{
		State:   locksteward.NodeState{Addr: addr, LastSaveOK: reported["rdb_last_bgsave_status"] != "err"},
		Process: reported["run_id"], Line: reported["master_replid"], FormerLine: former, FormerOffset: number("second_repl_offset"),
		Promoted: former != "" && !replica, Replica: replica, Uptime: -1, Evicted: number("evicted_keys"), Flushes: -1,
		Offset: number("master_repl_offset"), OffsetAt: number("server_time_usec"),
		Refused: map[locksteward.RefusalReason]int64{}, InStep: number("min_slaves_good_slaves"),
	}
	if s := number("uptime_in_seconds"); s >= 0 {
		server.Uptime = time.Duration(s) * time.Second
	}
	if server.OffsetAt < 0 {
		server.Offset = -1
	}
	for reason, code := range map[locksteward.RefusalReason]string{locksteward.RefusalSavingFails: "MISCONF", locksteward.RefusalTooFewReplicas: "NOREPLICAS"} {
		_, count, _ := strings.Cut(reported["errorstat_"+code], "count=")
		server.Refused[reason], _ = strconv.ParseInt(count, 10, 64)
	}
	return source.Part{Node: addr, Answered: true, Server: server}
}

// observed has v observe parts whose servers reported so many flushes.
func observed(v *servers, sweep *locksteward.Sweep, parts []source.Part, flushes map[string]int64) []locksteward.ServerEvent {
	parts = slices.Clone(parts)
	for i := range parts {
		if n, ok := flushes[parts[i].Node]; ok {
			parts[i].Server.Flushes = n
		}
	}
	return v.observe(sweep, parts, make([]sweptPart, len(parts)))
}

// round is a sweep at a moment over passes; complete unless cut.
func round(at time.Time, cut bool, locks ...locksteward.Lock) *locksteward.Sweep {
	return &locksteward.Sweep{At: at, Locks: locks, Masters: []locksteward.MasterPass{{Complete: !cut}}}
}

// kinds words events for comparison.
func kinds(events []locksteward.ServerEvent) string {
	var out []string
	for _, e := range events {
		s := fmt.Sprintf("%s %s", e.Kind, e.Node)
		if e.Was != "" {
			s += " was " + e.Was
		}
		if e.Count > 0 {
			s += fmt.Sprintf(" x%d", e.Count)
		}
		if e.After.IsZero() {
			s += " (young)"
		}
		out = append(out, s)
	}
	return strings.Join(out, "; ")
}

func TestServersTellWhatHappened(t *testing.T) {
	t.Parallel()
	const none = "master_replid2:0000000000000000000000000000000000000000"
	type step struct {
		at     time.Duration
		cut    bool
		passes []source.Part
		flush  map[string]int64
		want   string
	}
	old := "run_id:r1 uptime_in_seconds:900000 role:master master_replid:x evicted_keys:5 " + none
	for name, steps := range map[string][]step{
		"nothing": {
			{at: 0, passes: []source.Part{answer("a", old)}},
			{at: time.Minute, passes: []source.Part{answer("a", old)}},
		},
		"found young": {
			{at: 0, passes: []source.Part{answer("a", "run_id:r1 uptime_in_seconds:10 role:master")}, want: "restarted a (young)"},
		},
		"found older than every lease": {
			{at: 0, passes: []source.Part{answer("a", "run_id:r1 uptime_in_seconds:46 role:master")}},
		},
		"restart": {
			{at: 0, passes: []source.Part{answer("a", old)}},
			{at: time.Minute, passes: []source.Part{answer("a", "run_id:r2 uptime_in_seconds:20 role:master")}, want: "restarted a"},
			{at: 2 * time.Minute, passes: []source.Part{answer("a", "run_id:r2 uptime_in_seconds:80 role:master")}},
		},
		"another process behind the same address": {
			{at: 0, passes: []source.Part{answer("vip", old)}},
			{at: time.Minute, passes: []source.Part{answer("vip", "run_id:r2 uptime_in_seconds:5000 role:master")}, want: "failed_over vip"},
		},
		"sentinel": {
			{at: 0, passes: []source.Part{answer("a", old)}},
			{at: time.Minute, passes: []source.Part{answer("b", "run_id:r2 uptime_in_seconds:9000 role:master")}, want: "failed_over b was a"},
			{at: 2 * time.Minute, passes: []source.Part{answer("b", "run_id:r2 uptime_in_seconds:9060 role:master")}},
			{at: 3 * time.Minute, passes: []source.Part{answer("a", "run_id:r3 uptime_in_seconds:100 role:master")}, want: "failed_over a was b"},
		},
		"cluster: the dead master is missing for a while": {
			{at: 0, passes: []source.Part{answer("a", old), answer("b", "run_id:s role:master")}},
			{at: time.Minute, cut: true, passes: []source.Part{answer("b", "run_id:s role:master")}},
			{at: 2 * time.Minute, cut: true, passes: []source.Part{answer("b", "run_id:s role:master"), answer("c", "run_id:u role:master")}, want: "failed_over c was a"},
			{at: 3 * time.Minute, passes: []source.Part{answer("b", "run_id:s role:master"), answer("c", "run_id:u role:master")}},
		},
		"cluster: a node joined": {
			{at: 0, passes: []source.Part{answer("a", old)}},
			{at: time.Minute, passes: []source.Part{answer("a", old), answer("b", "run_id:s uptime_in_seconds:5 role:master")}},
		},
		"replica in between": {
			{at: 0, passes: []source.Part{answer("a", old)}},
			{at: time.Minute, passes: []source.Part{answer("a", strings.ReplaceAll(strings.ReplaceAll(old, "replid:x", "replid:y"), none, "master_replid2:zz"))}, want: "failed_over a"},
		},
		"backlog given up": {
			{at: 0, passes: []source.Part{answer("a", old)}},
			{at: time.Minute, passes: []source.Part{answer("a", strings.ReplaceAll(old, "replid:x", "replid:y"))}},
		},
		"evictions and flushes": {
			{at: 0, passes: []source.Part{answer("a", old)}, flush: map[string]int64{"a": 3}},
			{at: time.Minute, passes: []source.Part{answer("a", strings.ReplaceAll(old, "keys:5", "keys:9"))}, flush: map[string]int64{"a": 4}, want: "evicted a x4; flushed a x1"},
			{at: 2 * time.Minute, passes: []source.Part{answer("a", strings.ReplaceAll(old, "keys:5", "keys:9"))}}, // commandstats was not reported
			{at: 3 * time.Minute, passes: []source.Part{answer("a", strings.ReplaceAll(old, "keys:5", "keys:0"))}, flush: map[string]int64{"a": 0}},
		},
		"info refused": {
			{at: 0, passes: []source.Part{answer("a", "")}},
			{at: time.Minute, passes: []source.Part{answer("b", "")}},
		},
		"a replica answers": {
			{at: 0, passes: []source.Part{answer("a", old)}},
			{at: time.Minute, cut: true, passes: []source.Part{answer("a", "run_id:r2 uptime_in_seconds:1 role:slave")}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFacts()
			for i, st := range steps {
				got := observed(&f.servers, round(moment(st.at), st.cut), st.passes, st.flush)
				if kinds(got) != st.want {
					t.Errorf("step %d: %q, want %q", i, kinds(got), st.want)
				}
				// A restart of the agent changes nothing.
				text, err := f.encode()
				if err != nil {
					t.Fatal(err)
				}
				f = newFacts()
				if err := f.decode(text, time.Now()); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func ours(key, id string, fence int64, ttl time.Duration) locksteward.Lock {
	return locksteward.Lock{
		Observation: locksteward.Observation{
			Key: key, Kind: locksteward.KindLock, At: origin, TTL: ttl / 2,
			Claim: &locksteward.Claim{ID: id, Fence: fence, TTL: ttl},
		},
		History: locksteward.History{Looks: 1},
	}
}

// Verdicts pause for one longest lease of the locks known before or after, at
// least three heartbeats and at most a day; events are reported for at least as long
// as metadata outlives a lock.
func TestPauseIsOneLongestLease(t *testing.T) {
	t.Parallel()
	restarted := func(uptime int) []source.Part {
		return []source.Part{answer("a", fmt.Sprintf("run_id:r%d uptime_in_seconds:%d role:master", uptime, uptime))}
	}
	for _, c := range []struct {
		lease, want time.Duration
	}{{0, 45 * time.Second}, {10 * time.Second, 45 * time.Second}, {10 * time.Minute, 10 * time.Minute}, {1000 * time.Hour, 24 * time.Hour}} {
		v := newFacts().servers
		before := round(moment(0), false)
		if c.lease > 0 {
			before.Locks = []locksteward.Lock{ours("lock:a", "1", 0, time.Second), ours("lock:b", "2", 0, c.lease)}
		}
		observed(&v, before, restarted(900_000), nil)
		got := observed(&v, round(moment(time.Minute), false), restarted(20), nil) // the locks are gone with it
		if len(got) != 1 || got[0].Pause.Sub(got[0].At) != c.want || !got[0].After.Equal(moment(0)) {
			t.Errorf("lease %s: %+v", c.lease, got)
		}
		for _, at := range []time.Duration{time.Minute + eventsFor - time.Second, time.Minute + max(eventsFor, c.want)} {
			observed(&v, round(moment(at), false), restarted(20), nil)
			if reported, want := len(v.events), at < time.Minute+max(eventsFor, c.want); reported > 0 != want {
				t.Errorf("lease %s: %d events after %s", c.lease, reported, at)
			}
		}
	}
	v := newFacts().servers
	got := observed(&v, round(moment(0), false, ours("lock:b", "2", 0, 10*time.Minute)), restarted(60), nil)
	if len(got) != 1 || got[0].Pause.Sub(moment(0)) != 9*time.Minute {
		t.Errorf("found young: %+v", got)
	}
	for n := range 500 {
		observed(&v, round(moment(time.Duration(n)*time.Second), false), restarted(n%7), nil)
	}
	if len(v.events) > maxEvents {
		t.Errorf("%d events are kept", len(v.events))
	}
}

// hear is one look at heartbeats.
func hear(at time.Duration, alive ...locksteward.Instance) heartbeats {
	h := heartbeats{at: moment(at), clock: moment(at), alive: map[string]*locksteward.Instance{}, broken: func(string) bool { return false }, listeners: map[string]int{"P": 0}}
	for i := range alive {
		h.alive[alive[i].ID] = &alive[i]
	}
	return h
}

func TestSilenceIsARowWithoutABreak(t *testing.T) {
	t.Parallel()
	ps := processes{}
	look := func(h heartbeats) *locksteward.MissingHeartbeat {
		t.Helper()
		ps.seeAlive(h.alive, h.clock)
		got := ps.silent([]string{"P"}, h)
		if len(got) == 0 {
			return nil
		}
		return &got[0]
	}
	expect := func(s *locksteward.MissingHeartbeat, looks int, d time.Duration) {
		t.Helper()
		if s == nil || s.Looks != looks || s.For != d {
			t.Errorf("got %+v, want %d looks over %s", s, looks, d)
		}
	}
	beating := func(at time.Duration) locksteward.Instance { return locksteward.Instance{ID: "P", Beat: moment(at)} }

	if s := look(hear(0, beating(0))); s != nil {
		t.Errorf("a live process is silent: %+v", s)
	}
	expect(look(hear(30*time.Second)), 1, 0)
	expect(look(hear(60*time.Second)), 2, 30*time.Second)

	// A clock that jumps does not make it longer; the slower of the two counts.
	jump := hear(10 * time.Minute)
	jump.clock = moment(61 * time.Second)
	expect(look(jump), 3, 31*time.Second)

	// What cannot be read, and what happens to the server, begins a new row.
	unread := hear(11 * time.Minute)
	unread.unknown = map[string]bool{"P": true}
	if s := look(unread); s != nil {
		t.Errorf("not read is silent: %+v", s)
	}
	expect(look(hear(12*time.Minute)), 1, 0)
	expect(look(hear(13*time.Minute)), 2, time.Minute)
	broken := hear(14 * time.Minute)
	broken.broken = func(string) bool { return true }
	expect(look(broken), 1, 0)
	expect(look(hear(15*time.Minute)), 2, time.Minute)
	expect(look(hear(5*time.Minute)), 1, 0) // the server's clock went back
	if s := look(hear(16*time.Minute, beating(16*time.Minute))); s != nil {
		t.Errorf("it is back: %+v", s)
	}
	expect(look(hear(17*time.Minute)), 1, 0)
}

// A process that is connected is not silent, and what was before that counts for
// nothing when it is not any more.
func TestConnectedIsNotSilent(t *testing.T) {
	t.Parallel()
	ps := processes{}
	first := hear(0, locksteward.Instance{ID: "P", Beat: moment(0)})
	ps.seeAlive(first.alive, first.clock)
	for _, look := range []struct {
		at        time.Duration
		listeners int
		looks     int
		lasts     time.Duration
		deleted   bool
	}{
		{time.Second, 0, 1, 0, true}, // deleted by the process
		{11 * time.Second, 0, 2, 10 * time.Second, true},
		{21 * time.Second, 1, 3, 20 * time.Second, false}, // somebody else deleted it
		{31 * time.Second, 0, 1, 0, false},
		{41 * time.Second, 0, 2, 10 * time.Second, false},
		{51 * time.Second, -1, 6, 50 * time.Second, false}, // not known
		{61 * time.Second, 0, 1, 0, false},
	} {
		h := hear(look.at)
		if h.listeners["P"] = look.listeners; look.listeners < 0 {
			delete(h.listeners, "P")
		}
		s := ps.silent([]string{"P"}, h)[0]
		if s.Looks != look.looks || s.For != look.lasts || s.Deleted != look.deleted || s.Listeners != look.listeners {
			t.Errorf("%s: got %+v", look.at, s)
		}
	}
}

// A heartbeat that goes more than a second before its time was deleted, unless
// something happened to the server.
func TestDeletedHeartbeat(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		gone   time.Duration
		broken bool
		want   bool
	}{
		"before its time":  {gone: 8 * time.Second, want: true},
		"nearly expired":   {gone: 14500 * time.Millisecond},
		"expired":          {gone: 16 * time.Second},
		"the server broke": {gone: 8 * time.Second, broken: true},
	} {
		ps := processes{}
		first := hear(0, locksteward.Instance{ID: "P", Beat: moment(0)})
		ps.seeAlive(first.alive, first.clock)
		ps.silent([]string{"P"}, first)
		h := hear(c.gone)
		h.broken = func(string) bool { return c.broken }
		got := ps.silent([]string{"P"}, h)
		later := ps.silent([]string{"P"}, hear(time.Minute))
		if got[0].Deleted != c.want || later[0].Deleted != c.want {
			t.Errorf("%s: %v, later %v", name, got[0].Deleted, later[0].Deleted)
		}
	}
	ps := processes{}
	if got := ps.silent([]string{"never seen"}, hear(0)); got[0].Deleted {
		t.Error("the orderly end of a process that was never seen")
	}
}

func TestSuccessorWasStartedLaterInTheSameSlot(t *testing.T) {
	t.Parallel()
	beats := func(at time.Duration) time.Time { return moment(at) }
	for name, c := range map[string]struct {
		slot  string
		other locksteward.Instance
		want  bool
	}{
		"later":           {"web-0", locksteward.Instance{ID: "N", App: "a", Slot: "web-0", Started: beats(time.Second)}, true},
		"lived beside it": {"web-0", locksteward.Instance{ID: "N", App: "a", Slot: "web-0", Started: beats(-time.Second)}, false},
		"another slot":    {"web-0", locksteward.Instance{ID: "N", App: "a", Slot: "web-1", Started: beats(time.Second)}, false},
		"another app":     {"web-0", locksteward.Instance{ID: "N", App: "b", Slot: "web-0", Started: beats(time.Second)}, false},
		"no slot":         {"", locksteward.Instance{ID: "N", App: "a", Started: beats(time.Second)}, false},
		"start not known": {"web-0", locksteward.Instance{ID: "N", App: "a", Slot: "web-0"}, false},
	} {
		// The declared slot is what must survive a restart of the agent.
		f := newFacts()
		first := hear(0, locksteward.Instance{ID: "P", App: "a", Slot: c.slot, Beat: moment(0)})
		if got := f.processes.seeAlive(first.alive, first.clock); got != (c.slot != "") {
			t.Errorf("%s: worth saving: %v", name, got)
		}
		text, err := f.encode()
		if err != nil {
			t.Fatal(err)
		}
		f = newFacts()
		if err := f.decode(text, time.Now()); err != nil {
			t.Fatal(err)
		}
		h := hear(30*time.Second, c.other)
		f.processes.seeAlive(h.alive, h.clock)
		got := f.processes.silent([]string{"P"}, h)[0].Successor
		if (got != nil) != c.want || got != nil && got.ID != "N" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestFencesThatGoBack(t *testing.T) {
	t.Parallel()
	const a, b = "lock:{x}:a", "lock:{x}:b" // one slot, one counter
	usual := func(string) string { return "fence:x" }
	at := origin.UnixMicro()
	hold := func(key, id string, fence int64) locksteward.Lock { return ours(key, id, at+fence, time.Minute) }
	type step struct {
		cut   bool
		locks []locksteward.Lock
		want  []string // ids
	}
	for name, steps := range map[string][]step{
		"rising": {
			{locks: []locksteward.Lock{hold(a, "1", 1)}}, {locks: []locksteward.Lock{hold(a, "2", 2)}}, {locks: []locksteward.Lock{hold(b, "3", 3)}},
		},
		"the next hold of the key": {
			{locks: []locksteward.Lock{hold(a, "1", 9)}},
			{locks: []locksteward.Lock{hold(a, "2", 3)}, want: []string{"2"}},
			{locks: []locksteward.Lock{hold(a, "2", 3)}, want: []string{"2"}}, // as long as it stands
			{locks: []locksteward.Lock{hold(a, "3", 4)}, want: []string{"3"}}, // still below the largest
			{locks: []locksteward.Lock{hold(a, "4", 10)}},
		},
		"equal is back too": {
			{locks: []locksteward.Lock{hold(a, "1", 9)}}, {locks: []locksteward.Lock{hold(a, "2", 9)}, want: []string{"2"}},
		},
		"another key, taken later": {
			{locks: []locksteward.Lock{hold(a, "1", 9)}}, {}, {locks: []locksteward.Lock{hold(b, "2", 3)}, want: []string{"2"}},
		},
		"another key, perhaps taken before: the sweep may have missed it": {
			{locks: []locksteward.Lock{hold(a, "1", 9)}}, {locks: []locksteward.Lock{hold(b, "2", 3)}}, {locks: []locksteward.Lock{hold(b, "2", 3)}},
		},
		"another key, after a sweep that was cut": {
			{locks: []locksteward.Lock{hold(a, "1", 9)}}, {cut: true}, {locks: []locksteward.Lock{hold(b, "2", 3)}},
		},
		"both at once": {
			{locks: []locksteward.Lock{hold(a, "1", 9), hold(b, "2", 3)}}, {locks: []locksteward.Lock{hold(a, "1", 9), hold(b, "2", 3)}},
		},
		"a cut sweep forgets nothing": {
			{locks: []locksteward.Lock{hold(a, "1", 9)}},
			{locks: []locksteward.Lock{hold(a, "2", 3)}, want: []string{"2"}},
			{cut: true},
			{locks: []locksteward.Lock{hold(a, "2", 3)}, want: []string{"2"}},
		},
		"a number out of nowhere is not believed": {
			{locks: []locksteward.Lock{hold(a, "1", int64(48*time.Hour/time.Microsecond))}}, {locks: []locksteward.Lock{hold(a, "2", 3)}},
		},
		"no fence": {{locks: []locksteward.Lock{hold(a, "1", 9)}}, {locks: []locksteward.Lock{ours(a, "2", 0, time.Minute)}}},
	} {
		f := newFences()
		for i, st := range steps {
			var got []string
			for _, d := range f.observe(round(origin, st.cut, st.locks...), usual) {
				got = append(got, d.ID)
				if d.Fence > d.Highest {
					t.Errorf("%s: %+v", name, d)
				}
			}
			if !slices.Equal(got, st.want) {
				t.Errorf("%s, sweep %d: %q, want %q", name, i, got, st.want)
			}
		}
	}

	// Other libraries count for each lock alone.
	foreign := func(key string, fence int64) locksteward.Lock {
		l := ours(key, "", 0, time.Minute)
		l.Claim, l.Fence, l.TokenDigest = nil, fence, "hmac-sha256:"+key
		return l
	}
	other := newFacts()
	for i, st := range []step{
		{locks: []locksteward.Lock{foreign(a, 7), foreign(b, 2)}},
		{locks: []locksteward.Lock{foreign(a, 7), foreign(b, 3)}},
		{locks: []locksteward.Lock{foreign(a, 1), foreign(b, 3)}, want: []string{"hmac-sha256:" + a}},
		{locks: []locksteward.Lock{foreign(a, 8), foreign(b, 4)}},
	} {
		var got []string
		for _, d := range other.fences.observe(round(origin, false, st.locks...), usual) {
			got = append(got, d.ID)
		}
		if !slices.Equal(got, st.want) {
			t.Errorf("foreign, sweep %d: %q, want %q", i, got, st.want)
		}
		text, err := other.encode() // the agent restarts
		if err != nil {
			t.Fatal(err)
		}
		other = newFacts()
		if err := other.decode(text, time.Now()); err != nil {
			t.Fatal(err)
		}
	}

	// The largest fence is known after a restart of the agent, at once for the key
	// that had it.
	f := newFacts()
	f.fences.observe(round(origin, false, hold(a, "1", 9)), usual)
	text, err := f.encode()
	if err != nil {
		t.Fatal(err)
	}
	f = newFacts()
	if err := f.decode(text, time.Now()); err != nil {
		t.Fatal(err)
	}
	if got := f.fences.observe(round(origin, false, hold(a, "2", 3)), usual); len(got) != 1 || got[0].Highest != at+9 {
		t.Errorf("after a restart: %+v", got)
	}
	// Another prefix is another counter.
	if got := f.fences.observe(round(origin, false, hold(a, "3", 4)), func(string) string { return "other:" }); len(got) != 0 {
		t.Errorf("another counter: %+v", got)
	}
}

func TestFactsOfAnotherVersionAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"{", `{"v":3}`, `[]`} {
		if err := newFacts().decode(text, time.Now()); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
