package agent_test

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/testkit/testagent"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
)

// clocked is the agent of a bed as a process, whose wall clock the test may set.
type clocked struct {
	*testagent.Agent
	b *bed
}

func newClocked(b *bed, name string) clocked {
	b.t.Helper()
	return clocked{testagent.New(b.t, testagent.Options{Name: name, File: b.file, Clocked: true}), b}
}

func newProcess(b *bed, name string) clocked {
	b.t.Helper()
	return clocked{testagent.New(b.t, testagent.Options{Name: name, File: b.file}), b}
}

func (c clocked) as(name string) *apiclient.Client {
	c.b.t.Helper()
	client, err := apiclient.New(c.Where().Console, c.b.tokens[name], &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: within})
	if err != nil {
		c.b.t.Fatal(err)
	}
	return client
}

// said waits until the log has a line with all words.
func (c clocked) said(words ...string) {
	c.b.t.Helper()
	testredis.Eventually(c.b.t, within, func() bool {
		raw, err := os.ReadFile(c.LogPath())
		if err != nil {
			c.b.t.Fatal(err)
		}
	lines:
		for line := range strings.Lines(string(raw)) {
			for _, w := range words {
				if !strings.Contains(line, w) {
					continue lines
				}
			}
			return true
		}
		return false
	}, fmt.Sprintf("%s does not say %q", c.Name, words))
}

// request asks for a release as soon as the lock is known.
func (c clocked) request(target, key string) (r api.Request) {
	c.b.t.Helper()
	var err error
	testredis.Eventually(c.b.t, within, func() bool {
		r, err = c.as("ana").CreateRequest(c.b.t.Context(), api.CreateRequest{Target: target, Key: api.NewKey(key), Reason: "INC-7"})
		return err == nil
	}, "no request")
	return r
}

func (c clocked) approve(r api.Request) (api.Request, error) {
	return c.as("bo").Approve(c.b.t.Context(), r.ID, api.Decide{Reason: "checked", EvidenceHash: r.EvidenceHash})
}

// sweeps waits for n more sweeps of a target that has keys.
func (c clocked) sweeps(target string, n int) {
	c.b.t.Helper()
	var last float64
	n++ // the first change is that from not knowing
	testredis.Eventually(c.b.t, within, func() bool {
		all, _ := testagent.Scrape(c.b.t.Context(), c.Where().Metrics)
		for _, s := range all {
			if s.Series == `locksteward_sweep_keys_total{target="`+target+`"}` && s.Value != last {
				last = s.Value
				n--
			}
		}
		return n <= 0
	}, "it does not sweep any more")
}

// times is how often a new message had a finding with a status.
func (e *ear) times(finding string) int {
	ids := map[string]bool{}
	for _, h := range e.of("") {
		if h.finding() == finding {
			ids[h.id] = true
		}
	}
	return len(ids)
}

// takes has the ear take messages from now on; taken says whether it has one.
func (e *ear) takes(finding string) (taken func() bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	from := len(e.all)
	e.answer = nil
	return func() bool {
		return slices.ContainsFunc(e.got()[from:], func(h received) bool { return h.finding() == finding })
	}
}

// tellsOnce fails the test unless people were notified once that a lock breaks a rule, and
// not that it is over.
func (e *ear) tellsOnce(key string) {
	e.t.Helper()
	if fired, over := e.times(key+" firing"), e.times(key+" resolved"); fired != 1 || over != 0 {
		e.t.Errorf("%s: reported %d times that it fires and %d times that it is over", key, fired, over)
	}
}

// The agent's own clock is an hour off and is set right, or right and is set an hour
// off, while it runs: nothing fires, ends or is released for that, what waits to be reported
// is reported, and people hear of the clock.
// fault: 9
func TestOwnClockIsSetAnHour(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	for name, tc := range map[string]struct {
		from, to  time.Duration
		step, now string // what is said of the step, and of the clock while it is wrong
	}{
		"ahead by a step":    {0, hour, "1h0m0s ahead in one step", "1h0m0s ahead of that of the Redis server"},
		"behind by a step":   {0, -hour, "1h0m0s back in one step", "1h0m0s behind that of the Redis server"},
		"ahead, and mended":  {hour, 0, "1h0m0s back in one step", "1h0m0s ahead of that of the Redis server"},
		"behind, and mended": {-hour, 0, "1h0m0s ahead in one step", "1h0m0s behind that of the Redis server"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, e := testredis.Start(t), newEar(t)
			rdb := srv.Client(t)
			c, err := lock.New(rdb, lock.Options{App: "billing"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			h, err := c.Acquire(t.Context(), "lock:order:live", lock.Lease{TTL: 30 * time.Second, Expect: 10 * time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			set(t, rdb, "lock:order:stuck", token, 0)
			set(t, rdb, "lock:auto:stuck", token, 0) // free for half an hour of the agent's own
			a := newClocked(layBed(t, target(srv.URL())+orders+
				`  - {class: auto, match: ["lock:auto:*"], release: auto, proof: rule, dead_when: [ttl/none], auto_after: 30m}`+
				"\nrelease: {request_ttl: 3h}\n"+receivers("ops", e.url), ""), "agent")
			a.SetClock(tc.from)
			a.Start()
			r := a.request("main", "lock:order:stuck")
			testredis.Eventually(t, within, func() bool {
				return e.times("lock:order:stuck firing") == 1 && e.times("lock:auto:stuck firing") == 1
			}, "what is stuck is not reported")
			a.sweeps("main", 4) // enough for a proof, but for the time
			// Something waits for its next attempt.
			e.says(status(http.StatusServiceUnavailable))
			set(t, rdb, "lock:order:waits", token, 0)
			testredis.Eventually(t, within, func() bool {
				n := 0
				for _, h := range e.of("") {
					if h.finding() == "lock:order:waits firing" {
						n++
					}
				}
				return n >= 3
			}, "it is not tried again")

			a.SetClock(tc.to)
			taken := e.takes("lock:order:waits firing")
			a.said(tc.step)
			a.said(tc.now)
			testredis.Eventually(t, 2*within, taken, "what waited is not reported")
			a.sweeps("main", 4)
			set(t, rdb, "lock:order:later", token, 0)
			testredis.Eventually(t, within, func() bool { return e.times("lock:order:later firing") == 1 }, "what happens later is not reported")
			a.sweeps("main", 4)

			for _, key := range []string{"lock:order:stuck", "lock:auto:stuck", "lock:order:waits", "lock:order:later"} {
				e.tellsOnce(key)
			}
			if e.times("lock:order:live firing") != 0 || h.Context().Err() != nil {
				t.Errorf("a lock that lives: reported %d times, %v", e.times("lock:order:live firing"), h.Context().Err())
			}
			if n := rdb.Exists(t.Context(), "lock:order:stuck", "lock:auto:stuck", "lock:order:waits", "lock:order:later", "lock:order:live").Val(); n != 5 {
				t.Errorf("%d of five locks are there", n)
			}
			// A word for what was asked for before the step.
			if r, err = a.approve(r); err != nil || r.State != "released" {
				t.Fatalf("%+v, %v", r, err)
			}
			testredis.Eventually(t, within, func() bool { return e.times("lock:order:stuck resolved") == 1 }, "its end is not reported")
			a.End()
			a.b.verify()
		})
	}
}

// An agent that was killed comes back with its clock set back: it says so, tells what
// waited, and nothing twice.
// fault: 9
func TestOwnClockGoesBackBetweenLives(t *testing.T) {
	t.Parallel()
	srv, e := testredis.Start(t), newEar(t)
	rdb := srv.Client(t)
	set(t, rdb, "lock:order:stuck", token, 0)
	a := newClocked(layBed(t, target(srv.URL())+orders+receivers("ops", e.url), ""), "agent")
	a.SetClock(time.Hour)
	a.Start()
	testredis.Eventually(t, within, func() bool { return e.times("lock:order:stuck firing") == 1 }, "what is stuck is not reported")
	a.sweeps("main", 2) // until the delivery is noted
	e.says(status(http.StatusServiceUnavailable))
	set(t, rdb, "lock:order:waits", token, 0)
	testredis.Eventually(t, within, func() bool { return e.times("lock:order:waits firing") == 1 }, "it is not tried")
	a.Kill()
	a.SetClock(0)
	taken := e.takes("lock:order:waits firing")
	a.Start()
	a.said("this machine's clock is at least", "behind the newest entry of the audit trail", `"apart":-35`)
	testredis.Eventually(t, 2*within, taken, "what waited is not reported")
	a.sweeps("main", 4)
	e.tellsOnce("lock:order:stuck")
	e.tellsOnce("lock:order:waits")
	if n := rdb.Exists(t.Context(), "lock:order:stuck", "lock:order:waits").Val(); n != 2 {
		t.Errorf("%d of two locks are there", n)
	}
	a.End()
	a.b.verify()
}

// Of two replicas one has a clock an hour off, which is set right and wrong again: who
// does what, who may write and what is reported does not depend on it, nor what happens when
// either of them dies.
// fault: 9
func TestReplicasWithClocksAnHourApart(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"ahead of": time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, srv, e := testpg.Start(t), testredis.Start(t), newEar(t)
			rdb := srv.Client(t)
			set(t, rdb, "lock:order:stuck", token, 0)
			b := layBed(t, fmt.Sprintf("targets: [%s]\n", replicaTarget("main", srv, 0))+orders+receivers("ops", e.url), server.DSN())
			right, wrong := newClocked(b, "right"), newClocked(b, "wrong")
			wrong.SetClock(off)
			wrong.Start()
			testredis.Eventually(t, within, func() bool { return e.times("lock:order:stuck firing") == 1 }, "what is stuck is not reported")
			right.Start()
			wrong.said("1h0m0s " + name + " that of the database")
			wrong.said("1h0m0s " + name + " that of the Redis server")
			leads := func(c clocked) bool {
				return strings.Contains(get("http://"+c.Where().Metrics+"/metrics"), `locksteward_leader{target="main"} 1`)
			}
			// Each takes over from the other, with a clock that is off, and with one that
			// is being set.
			for i, pair := range [][2]clocked{{wrong, right}, {right, wrong}} {
				testredis.Eventually(t, within, func() bool { return leads(pair[0]) }, "the target is with nobody")
				pair[0].Kill()
				testredis.Eventually(t, within, func() bool { return leads(pair[1]) }, "nobody takes over")
				key := fmt.Sprintf("lock:order:%d", i)
				set(t, rdb, key, token, 0)
				testredis.Eventually(t, within, func() bool { return e.times(key+" firing") == 1 }, "what happens after a take-over is not reported")
				pair[0].Start()
				// Asked for at one, approved at the other.
				r := pair[0].request("main", key)
				if r, err := pair[1].approve(r); err != nil || r.State != "released" {
					t.Errorf("%+v, %v", r, err)
				}
				testredis.Eventually(t, within, func() bool { return e.times(key+" resolved") == 1 }, "its end is not reported")
				if i == 1 {
					break
				}
				wrong.SetClock(0)
				wrong.SetClock(off)
			}
			wrong.SetClock(-off)
			wrong.said("2h0m0s", "in one step")
			wrong.sweeps("main", 3)
			e.tellsOnce("lock:order:stuck")
			if rdb.Exists(t.Context(), "lock:order:stuck").Val() != 1 {
				t.Error("what nobody approved is released")
			}
			list, err := right.as("ana").Requests(t.Context(), apiclient.RequestsQuery{})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range list.Requests {
				if r.State != string(locksteward.RequestReleased) {
					t.Errorf("%s: %s", r.ID, r.State)
				}
			}
			right.End()
			wrong.End()
			b.verify()
		})
	}
}
