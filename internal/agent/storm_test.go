package agent_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

var stormFor = flag.Duration("agent.storm", 4*time.Second, "how long TestStorm lets everything happen at once")

const (
	// stormPause is between two rounds of one who does something.
	stormPause = 20 * time.Millisecond
	// stormStuck is how long one round may take: far more than the store and the
	// other replica are waited for.
	stormStuck = 90 * time.Second
)

// Reloads that add and remove a target, pauses, take-overs, lists, requests and
// locks that come and go, all at once: nobody waits for ever, and the agent is healthy.
func TestStorm(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	texts := []string{stormTargets(srv, "a", "b"), stormTargets(srv, "a", "b", "c")}
	beds := newBeds(t, 2, texts[0], testpg.Start(t).DSN())
	stays, goes := beds[0], beds[1]
	goes.file = filepath.Join(goes.dir, "goes.yaml") // the other file is written all the time
	goes.write(texts[0])
	testredis.Eventually(t, back, func() bool { return len(stays.leads())+len(goes.leads()) == 2 }, "nobody works on the targets")

	ctx, cancel := context.WithTimeout(t.Context(), *stormFor)
	defer cancel()
	s := &storm{t: t, ctx: ctx}
	var rounds atomic.Int64 // of configurations
	s.run("reload", func() error {
		stays.write(texts[rounds.Add(1)%2])
		return stays.agent.Reload(t.Context())
	})
	s.run("pause", func() error {
		for _, on := range []bool{true, false} {
			if err := stays.agent.PauseReleases(t.Context(), "root", on); err != nil {
				return err
			}
		}
		return nil
	})
	for _, who := range []string{"one list", "another list"} {
		s.run(who, func() error {
			stays.agent.Backend().Targets()
			stays.agent.Backend().Classes()
			if said := get("http://" + stays.agent.MetricsAddr().String() + "/-/healthy"); said != "ok\n" {
				return fmt.Errorf("not healthy: %s", said)
			}
			stays.metrics()
			stays.readiness()
			if _, err := stays.ana.Targets(t.Context()); err != nil {
				return err
			}
			_, err := stays.ana.Findings(t.Context(), apiclient.FindingsQuery{})
			return err
		})
	}
	s.run("locks", func() error {
		for _, key := range []string{"lock:order:1", "lock:order:2"} {
			if err := rdb.Set(t.Context(), key, token, 0).Err(); err != nil {
				return err
			}
		}
		return rdb.Del(t.Context(), "lock:order:2").Err()
	})
	s.run("requests", func() error {
		// Refused for as long as releases are paused, or no replica has the target.
		r, err := stays.ana.CreateRequest(t.Context(), api.CreateRequest{Target: "a", Key: api.NewKey("lock:order:1"), Reason: "storm"})
		if err == nil {
			_, _ = stays.bo.Approve(t.Context(), r.ID, api.Decide{Reason: "storm", EvidenceHash: r.EvidenceHash})
		}
		return nil
	})
	s.run("take-over", func() error {
		goes.stop()
		goes.start()
		deadline := time.After(3 * time.Second)
		for len(goes.leads()) == 0 {
			select {
			case <-deadline:
				return nil // a storm may keep it from its turn
			case <-time.After(stormPause):
			}
		}
		return goes.agent.Reload(t.Context())
	})
	s.run("log", func() error {
		for _, e := range stays.logs.TakeAll() { // ten minutes of it are too much to keep
			if e.Level >= zapcore.DPanicLevel || strings.Contains(e.Message, "stands still") {
				return fmt.Errorf("%s: %v", e.Message, e.ContextMap())
			}
		}
		return nil
	})
	s.wait()
}

func stormTargets(srv *testredis.Server, names ...string) string {
	var list []string
	for _, name := range names {
		list = append(list, fmt.Sprintf("{name: %s, url: '%s', schedule: '@every 1s', release_credentials: {}}", name, srv.URL()))
	}
	return "cluster: {lease: 2s}\ntargets: [" + strings.Join(list, ", ") + "]\n" + strings.Replace(orders, "release: approve", "release: approve, dead_when: [ttl/none]", 1)
}

// storm is some who do something again and again until ctx ends.
type storm struct {
	t   *testing.T
	ctx context.Context
	all sync.WaitGroup

	mu    sync.Mutex
	began map[string]time.Time // of the round under way
	done  map[string]int
}

func (s *storm) run(name string, round func() error) {
	s.all.Go(func() {
		for s.ctx.Err() == nil {
			s.note(name, time.Now())
			if err := round(); err != nil {
				s.t.Errorf("%s: %v", name, err)
				return
			}
			select {
			case <-s.ctx.Done():
			case <-time.After(stormPause):
			}
		}
		s.note(name, time.Time{})
	})
}

func (s *storm) note(name string, began time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.began == nil {
		s.began, s.done = map[string]time.Time{}, map[string]int{}
	}
	s.began[name] = began
	s.done[name]++
}

// stuck is one whose round takes too long; "" for none.
func (s *storm) stuck() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, began := range s.began {
		if !began.IsZero() && time.Since(began) > stormStuck {
			return name
		}
	}
	return ""
}

// wait returns when all have ended, or ends the test if one never does: then the agents
// cannot be stopped either.
func (s *storm) wait() {
	ended := make(chan struct{})
	go func() {
		s.all.Wait()
		close(ended)
	}()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			s.t.Logf("rounds: %v", s.done)
			return
		case <-tick.C:
			if name := s.stuck(); name != "" {
				fmt.Fprintf(os.Stderr, "%s does not end; rounds: %v\n%s", name, s.done, stacks(s.t))
				os.Exit(1)
			}
		}
	}
}
