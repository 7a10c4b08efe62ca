package scanner

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// What INFO proves of refused writes, over time: errors count where they grew between
// two looks at the same process, and stand until something speaks against them.
func TestRefusalsAreProved(t *testing.T) {
	t.Parallel()
	const ok, fails = " rdb_last_bgsave_status:ok", " rdb_last_bgsave_status:err"
	type step struct {
		at     time.Duration
		fields string
		want   string
	}
	misconfs := func(n int) string { return fmt.Sprintf(" errorstat_MISCONF:count=%d", n) }
	short := func(n, inStep int) string {
		return fmt.Sprintf(" errorstat_NOREPLICAS:count=%d min_slaves_good_slaves:%d", n, inStep)
	}
	for name, steps := range map[string][]step{
		"old errors prove nothing": {
			{0, misconfs(7) + short(7, 1) + fails, ""},
			{time.Minute, misconfs(7) + short(7, 1) + fails, ""},
		},
		"saving fails, and works again": {
			{0, ok, ""},
			{time.Minute, misconfs(3) + fails, "saving_fails x3 0s-1m0s"},
			{2 * time.Minute, misconfs(5) + fails, "saving_fails x5 0s-2m0s"},
			{3 * time.Minute, misconfs(6) + ok, ""},
		},
		"nobody meets it any more": {
			{0, fails, ""},
			{time.Minute, misconfs(3) + fails, "saving_fails x3 0s-1m0s"},
			{time.Minute + refusedFor - time.Second, misconfs(3) + fails, "saving_fails x3 0s-1m0s"},
			{time.Minute + refusedFor, misconfs(3) + fails, ""},
		},
		"too few replicas until there are more": {
			{0, " min_slaves_good_slaves:1", ""},
			{time.Minute, short(2, 1), "too_few_replicas x2 0s-1m0s of 1"},
			{2 * time.Minute, short(2, 1), "too_few_replicas x2 0s-1m0s of 1"},
			{3 * time.Minute, short(2, 2), ""},
		},
		"more replicas are too few as well": {
			{0, " min_slaves_good_slaves:1", ""},
			{time.Minute, short(2, 1), "too_few_replicas x2 0s-1m0s of 1"},
			{2 * time.Minute, short(4, 2), "too_few_replicas x4 0s-2m0s of 2"},
		},
		"no replica at all": {
			{0, " min_slaves_good_slaves:0", "too_few_replicas x0 of 0"},
			{time.Hour, " min_slaves_good_slaves:0", "too_few_replicas x0 of 0"},
			{2 * time.Hour, " min_slaves_good_slaves:1", ""},
		},
		"switched off": {
			{0, " min_slaves_good_slaves:1", ""},
			{time.Minute, short(2, 1), "too_few_replicas x2 0s-1m0s of 1"},
			{2 * time.Minute, " errorstat_NOREPLICAS:count=2", ""},
		},
		"the counts begin anew": {
			{0, misconfs(9) + fails, ""},
			{time.Minute, fails, ""},
			{2 * time.Minute, misconfs(1) + fails, "saving_fails x1 1m0s-2m0s"},
		},
		"another process": {
			{0, fails, ""},
			{time.Minute, " run_id:r2" + misconfs(3) + fails, ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFacts()
			for i, s := range steps {
				// As after a restart of the agent, in between.
				text, err := f.encode()
				if err != nil {
					t.Fatal(err)
				}
				f = newFacts()
				if err := f.decode(text, origin); err != nil {
					t.Fatal(err)
				}
				p := answer("a", "run_id:r1 role:master"+s.fields)
				observed(&f.servers, round(moment(s.at), false), []source.Part{p}, nil)
				var got []string
				for _, r := range f.servers.refusalsOf("a", moment(s.at)) {
					one := fmt.Sprintf("%s x%d", r.Reason, r.Count)
					if r.Count > 0 {
						one += fmt.Sprintf(" %s-%s", r.After.Sub(origin), r.At.Sub(origin))
					}
					if r.Reason == locksteward.RefusalTooFewReplicas {
						one += fmt.Sprint(" of ", r.Replicas)
					}
					got = append(got, one)
				}
				if said := strings.Join(got, "; "); said != s.want {
					t.Errorf("step %d: %q, want %q", i, said, s.want)
				}
			}
		})
	}
	// Facts of a version that did not count: nothing is known of what came before.
	f := newFacts()
	if err := f.decode(`{"v":2,"nodes":{"a":{"run_id":"r1","at":"2026-08-01T12:00:00Z"}}}`, origin); err != nil {
		t.Fatal(err)
	}
	observed(&f.servers, round(moment(time.Minute), false), []source.Part{answer("a", "run_id:r1 role:master"+misconfs(7)+fails)}, nil)
	if got := f.servers.refusalsOf("a", moment(time.Minute)); len(got) != 0 {
		t.Errorf("of facts that say nothing: %+v", got)
	}
}
