package lockhistory

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/store"
)

// Events that the store refuses wait in a bounded queue; the rest is counted, and Enqueue never blocks.
func TestWriterIsBounded(t *testing.T) {
	t.Parallel()
	path := "sqlite:" + filepath.Join(t.TempDir(), "store.db")
	st, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	core, logs := observer.New(zap.InfoLevel)
	d := NewWriter(zap.New(core), st)
	began := time.Now()
	for i := range maxQueue + 5000 {
		d.Enqueue(fmt.Sprint("t", i/12_000), event(0, fmt.Sprint("lock:", i), began, api.EventReleased, hold{}))
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
	for range 2 {
		if d.flush(t.Context()) {
			t.Error("there is more to write to a store that is closed")
		}
	}
	if n := logs.FilterMessageSnippet("more arrive than are written").All(); len(n) != 1 || n[0].ContextMap()["events"] != int64(5000) {
		t.Errorf("%+v", n)
	}
	if n := logs.FilterMessageSnippet("trying again").Len(); n != 1 {
		t.Errorf("reported %d times", n)
	}
	again, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	d.store = again
	for d.flush(t.Context()) {
	}
	d.Enqueue("t8", event(0, "last", began, api.EventGone, hold{}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d.Run(ctx)
	if got, err := again.LockEvents(t.Context(), "t8", 0, "last", 10); err != nil || len(got) != 1 {
		t.Errorf("what came last: %+v, %v", got, err)
	}
	if logs.FilterMessageSnippet("is written again").Len() != 1 || len(d.queue) != 0 {
		t.Errorf("%d events wait", len(d.queue))
	}
	for i, want := range map[int]int{0: 1, maxQueue - 1: 1, maxQueue: 0} {
		got, err := again.LockEvents(t.Context(), fmt.Sprint("t", i/12_000), 0, fmt.Sprint("lock:", i), 10)
		if err != nil || len(got) != want {
			t.Errorf("lock:%d: %+v, %v", i, got, err)
		}
	}
	d.Enqueue("t9", event(0, "after", began, api.EventGone, hold{})) // nobody writes any more: no panic
}
