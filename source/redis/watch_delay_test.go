package redis

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestDelaysAreReportedForAWhile: the longest of the last half minute at least, of the last
// minute at most.
func TestDelaysAreReportedForAWhile(t *testing.T) {
	t.Parallel()
	var d delays
	now := time.Unix(1_800_000_000, 0)
	if got := d.longest(now); got != 0 {
		t.Errorf("%s at the begin", got)
	}
	d.note(3*time.Second, now)
	d.note(time.Second, now)
	for _, step := range []struct{ after, want time.Duration }{
		{time.Second, 3 * time.Second}, {28 * time.Second, 3 * time.Second}, {2 * time.Second, 3 * time.Second}, {30 * time.Second, 0}, {time.Hour, 0},
	} {
		now = now.Add(step.after)
		if got := d.longest(now); got != step.want {
			t.Errorf("%s later: %s, want %s", step.after, got, step.want)
		}
	}
	d.note(time.Minute, now)
	if got := d.longest(now.Add(time.Hour)); got != 0 {
		t.Errorf("%s an hour later", got)
	}
}

// TestQueueKnowsSinceWhenOneWaits, those that are being read included; what is only to
// be looked at again nobody waits for.
func TestQueueKnowsSinceWhenOneWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(time.Now())
		q.put(false, workItem{key: "calm"})
		if got := q.oldest(); got != 0 {
			t.Errorf("since %d for a round", got)
		}
		time.Sleep(time.Second)
		q.put(true, workItem{key: "a"})
		time.Sleep(time.Second)
		q.put(true, workItem{key: "a", written: true}, workItem{key: "calm"})
		waits := func() time.Duration { return time.Since(q.moment(q.oldest())) }
		if got := waits(); got != time.Second {
			t.Errorf("waits for %s", got)
		}
		first := q.take(1)
		if got := waits(); got != time.Second {
			t.Errorf("waits for %s while it is read", got)
		}
		q.put(true, first...) // it could not be read
		q.done(first)
		time.Sleep(time.Second)
		both := q.take(2)
		if got := waits(); len(both) != 2 || got != 2*time.Second {
			t.Errorf("%d waits for %s after another try", len(both), got)
		}
		q.done(both)
		if got := q.oldest(); got != 0 {
			t.Errorf("since %d when all is done", got)
		}
	})
}
