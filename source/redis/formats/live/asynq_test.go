package live_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/locksteward/locksteward"
)

// quiet keeps asynq's own log out of the test's.
type quiet struct{}

func (quiet) Debug(...any) {}
func (quiet) Info(...any)  {}
func (quiet) Warn(...any)  {}
func (quiet) Error(...any) {}
func (quiet) Fatal(args ...any) {
	panic(args)
}

func TestAsynqUnique(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	option := asynq.RedisClientOpt{Addr: l.server.Addr()}
	client, inspector := asynq.NewClient(option), asynq.NewInspector(option)
	defer func() { must(t, errors.Join(client.Close(), inspector.Close())) }()
	task := asynq.NewTask("email:send", []byte(`{"to":7}`))
	enqueue := func() (*asynq.TaskInfo, error) {
		return client.EnqueueContext(t.Context(), task, asynq.Queue("mail"), asynq.Unique(time.Minute))
	}
	info, err := enqueue()
	must(t, err)
	keys := l.client.Keys(t.Context(), "asynq:{mail}:unique:*").Val()
	if len(keys) != 1 {
		t.Fatalf("unique keys = %q, want one", keys)
	}
	w := wants{
		key: keys[0], typ: "string", format: "asynq-unique",
		confidence: locksteward.ConfidenceHigh, identity: locksteward.IdentityStrong, ttl: time.Minute,
	}
	l.check(t, w)
	l.refused(t, keys[0], "its task is still to be done")
	if _, err := enqueue(); !errors.Is(err, asynq.ErrDuplicateTask) {
		t.Errorf("a second task = %v, want %v", err, asynq.ErrDuplicateTask)
	}

	// An archived task keeps its lock until the TTL is over.
	must(t, inspector.ArchiveTask("mail", info.ID))
	if _, err := enqueue(); !errors.Is(err, asynq.ErrDuplicateTask) {
		t.Errorf("a second task beside an archived one = %v, want %v", err, asynq.ErrDuplicateTask)
	}
	l.check(t, w)
	l.free(t, keys[0])
	_, err = enqueue()
	must(t, err)
	for _, lock := range l.sweep(t) {
		if lock.Key != keys[0] {
			t.Errorf("%q is listed as a %s lock", lock.Key, lock.Library)
		}
	}
}

func TestAsynqLease(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	option := asynq.RedisClientOpt{Addr: l.server.Addr()}
	client := asynq.NewClient(option)
	defer func() { must(t, client.Close()) }()
	works, finish := make(chan struct{}, 2), make(chan struct{})
	server := asynq.NewServer(option, asynq.Config{Concurrency: 2, Queues: map[string]int{"mail": 1}, Logger: quiet{}, TaskCheckInterval: 100 * time.Millisecond})
	must(t, server.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		works <- struct{}{}
		<-finish
		return nil
	})))
	defer server.Shutdown()
	defer close(finish)
	for range 2 {
		_, err := client.EnqueueContext(t.Context(), asynq.NewTask("report", nil), asynq.Queue("mail"))
		must(t, err)
	}
	for range 2 {
		select {
		case <-works:
		case <-time.After(patience):
			t.Fatal("asynq does not begin its tasks")
		}
	}
	l.check(t, wants{
		key: "asynq:{mail}:lease", typ: "zset", format: "asynq-lease",
		confidence: locksteward.ConfidenceHigh, identity: locksteward.IdentityNone, count: 2,
	})
	l.refused(t, "asynq:{mail}:lease", "asynq's own servers")
}
