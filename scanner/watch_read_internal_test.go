package scanner

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/connect"
)

// answered is an error that a server answers.
type answered string

func (r answered) Error() string { return string(r) }
func (answered) RedisError()     {}

// refusing answers each pipeline with the next of its errors, the last for ever.
type refusing struct {
	answers []answered
}

func (*refusing) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (*refusing) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (r *refusing) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(_ context.Context, cmds []redis.Cmder) error {
		err := r.answers[0]
		r.answers = r.answers[min(1, len(r.answers)-1):]
		for _, cmd := range cmds {
			cmd.SetErr(err)
		}
		return err
	}
}

// TestKeysOfABatchThatFailedWait: a batch with a key of another master is read key
// by key. When the server is down before all are read, the others wait like it.
func TestKeysOfABatchThatFailedWait(t *testing.T) {
	t.Parallel()
	classes, err := class.NewSet(nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(zap.NewNop(), locksteward.Target{Name: "t"}, openConn(t, "redis://127.0.0.1:1"), classes, locksteward.DigestKey{}, Config{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	client.AddHook(&refusing{answers: []answered{"MOVED 1 127.0.0.1:2", "MOVED 1 127.0.0.1:2", "CLUSTERDOWN The cluster is down"}})
	n := newNodeWatch(s.watch, connect.Master{Addr: "127.0.0.1:1", Client: client}, watchPlan{})
	keys := []string{"lock:a", "lock:b", "lock:c", "lock:d"}
	for _, key := range keys {
		n.queue.put(true, errand{key: key, written: true})
	}
	if err := n.readBatch(t.Context(), n.queue.take(len(keys))); err == nil {
		t.Fatal("a server that is down was read")
	}
	for _, key := range keys {
		if !n.queue.has(key) {
			t.Errorf("%s changed, and nobody will read it", key)
		}
	}
}
