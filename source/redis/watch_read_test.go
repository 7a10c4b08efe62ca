package redis

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/source/redis/connect"
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

// refused is the watch of a master that answers so.
func refused(t *testing.T, answers ...answered) *nodeWatch {
	t.Helper()
	s := bound(t, openConn(t, "redis://127.0.0.1:1"))
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	client.AddHook(&refusing{answers: answers})
	return newNodeWatch(s.watch, connect.Master{Addr: "127.0.0.1:1", Client: client}, watchPlan{})
}

// TestKeysOfABatchThatFailedWait: a batch with a key of another master is read key
// by key. When the server is down before all are read, the others wait like it.
func TestKeysOfABatchThatFailedWait(t *testing.T) {
	t.Parallel()
	n := refused(t, "MOVED 1 127.0.0.1:2", "MOVED 1 127.0.0.1:2", "CLUSTERDOWN The cluster is down")
	keys := []string{"lock:a", "lock:b", "lock:c", "lock:d"}
	for _, key := range keys {
		n.queue.put(true, workItem{key: key, written: true})
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

// What could not be read waits as it did before: nobody waits for the keys of a resync
// and for those that are only looked at again, and they stay behind what changed.
func TestKeysThatWereNotReadKeepTheirPlace(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string][]answered{
		"the server is down":        {"CLUSTERDOWN The cluster is down"},
		"some are of another one":   {"MOVED 1 127.0.0.1:2", "MOVED 1 127.0.0.1:2", "CLUSTERDOWN The cluster is down"},
		"all are of another one":    {"MOVED 1 127.0.0.1:2"},
		"and the last one, by then": {"MOVED 1 127.0.0.1:2", "CLUSTERDOWN The cluster is down"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := refused(t, answers...)
			n.queue.putKnown([]string{"lock:known"})
			n.queue.put(false, workItem{key: "lock:calm"})
			if err := n.readBatch(t.Context(), n.queue.take(2)); err == nil && !strings.HasPrefix(string(answers[0]), "MOVED") {
				t.Fatal("what cannot be read was read")
			}
			if n.queue.oldest() != 0 || n.queue.changes() != 0 {
				t.Errorf("somebody is said to wait for keys that did not change, %d of them", n.queue.changes())
			}
			n.queue.put(true, workItem{key: "lock:changed"})
			got := n.queue.take(3)
			if len(got) != 3 || got[0].key != "lock:changed" || got[0].since == 0 {
				t.Errorf("the next are %+v, want lock:changed first", got)
			}
		})
	}
}
