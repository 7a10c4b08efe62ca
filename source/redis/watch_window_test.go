package redis

import (
	"strconv"
	"testing"
	"time"
)

// Only changes make the next batch wait longer: known locks that are read again after
// a watch was set up do not delay what the server tells.
func TestWindowFollowsChanges(t *testing.T) {
	t.Parallel()
	q := newQueue(time.Now())
	for i := range 10 * manyChanges {
		q.put(false, workItem{key: "known:" + strconv.Itoa(i)})
	}
	if got := windowAfter(q.changes()); got != window {
		t.Errorf("after known locks: %s", got)
	}
	for i := range manyChanges - 1 {
		q.put(true, workItem{key: "changed:" + strconv.Itoa(i)})
	}
	if got := windowAfter(q.changes()); got != window {
		t.Errorf("after %d changes: %s", q.changes(), got)
	}
	q.put(true, workItem{key: "known:0"})
	if got := windowAfter(q.changes()); got != longWindow {
		t.Errorf("after %d changes: %s", q.changes(), got)
	}
}
