package scanner

import (
	"errors"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// What sweeps find of a flush, one after the other: what still seems to stand at the
// sweep that notices it may have been read before it, and the next one decides.
func TestFlushWindow(t *testing.T) {
	t.Parallel()
	const info = "run_id:r1 uptime_in_seconds:900000 role:master master_replid:x"
	held := func(seen, expires time.Duration) *entry {
		l := lockState{key: "k", traits: &traits{node: "a"}, at: micros(moment(seen)), expireAt: -1}
		if expires != 0 {
			l.expireAt = moment(expires).UnixMilli()
		}
		return begin(l)
	}
	old := held(-time.Minute, 0)
	type step struct {
		count       int64
		cut         bool
		gone, stood []*entry
		pushed      time.Duration // when the server reported it; 0 for not
		took        int           // gone by what the watch saw
	}
	for name, tc := range map[string]struct {
		steps []step // one each minute, after one with nothing
		want  int
	}{
		"all gone":                         {[]step{{count: 1, gone: []*entry{old, old}}}, 2},
		"no lock was there":                {[]step{{count: 1}}, 0},
		"another database":                 {[]step{{count: 1, gone: []*entry{old}, stood: []*entry{old}}, {count: 1, gone: []*entry{old}, stood: []*entry{old}}}, 0},
		"another database, and all end":    {[]step{{count: 1, stood: []*entry{old}}, {count: 1, stood: []*entry{old}}, {count: 1, gone: []*entry{old}}}, 0},
		"in the middle of the sweep":       {[]step{{count: 1, gone: []*entry{old}, stood: []*entry{old}}, {count: 1, gone: []*entry{old}}}, 2},
		"the sweep was cut short":          {[]step{{count: 1, cut: true}, {count: 1, cut: true}, {count: 1, gone: []*entry{old}}}, 1},
		"taken since":                      {[]step{{count: 1, gone: []*entry{old}, stood: []*entry{held(30*time.Second, 0)}}}, 1},
		"had run out":                      {[]step{{count: 1, gone: []*entry{old, held(-time.Minute, 10*time.Second)}}}, 1},
		"the watch saw it":                 {[]step{{count: 1, took: 3}}, 3},
		"the watch saw it, read before it": {[]step{{count: 1, took: 3, stood: []*entry{old}, pushed: 61 * time.Second}}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := &newFacts().servers
			one := func(at time.Duration, st step) {
				p := answer("a", info)
				if st.cut {
					p.Err = errors.New("cut")
				}
				p.Server.Flushes = st.count
				found := make([]sweptPart, 1)
				flush := &found[0].flush
				var pushed *pushedFlush
				if st.pushed != 0 {
					pushed = &pushedFlush{at: micros(moment(st.pushed)), ordered: true}
				}
				*flush = v.window(&p, pushed)
				for _, e := range st.gone {
					flush.ends(e, micros(moment(at)))
				}
				for _, e := range st.stood {
					flush.stands(e, micros(moment(at)))
				}
				v.observe(round(moment(at), st.cut), []source.Part{p}, found)
				v.settleFlushes([]source.Part{p}, found, moment(at), func(string) int { return st.took })
			}
			one(0, step{})
			for i, st := range tc.steps {
				one(time.Duration(i+1)*time.Minute, st)
			}
			if len(v.events) != 1 || v.events[0].Locks != tc.want {
				t.Errorf("%+v, want one flush of %d locks", v.events, tc.want)
			}
		})
	}
}

// When a push came is known by our clock and what it differs from the server's, some
// milliseconds late: what is notified of the flush has the server's own times, those of
// the looks, so that it lies before the losses that it explains.
func TestPushedFlushHasTheTimesOfLooks(t *testing.T) {
	t.Parallel()
	table := newTable(locksteward.Target{})
	table.flush("a", moment(time.Second+5*time.Millisecond), true)
	for i := range 3 {
		e := begin(lockState{key: "k", traits: &traits{node: "a"}, at: micros(moment(time.Duration(i) * time.Millisecond)), expireAt: -1})
		if !table.flushedSince(e) {
			t.Fatal("a hold that was seen before is not put down to the flush")
		}
		table.countFlushed(e, micros(moment(time.Second+time.Duration(i)*time.Millisecond)))
	}
	got := table.flushes()
	if len(got) != 1 || got[0].Locks != 3 || !got[0].After.Equal(moment(0)) || !got[0].At.Equal(moment(time.Second)) {
		t.Errorf("got %+v", got)
	}
	if again := table.flushes(); len(again) != 0 {
		t.Errorf("reported again: %+v", again)
	}
	if n := table.takeFlush("a"); n != 3 || table.takeFlush("a") != 0 {
		t.Errorf("a sweep takes %d", n)
	}
}
