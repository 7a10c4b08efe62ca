package soak_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testagent"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/store"
)

const configuration = `
targets:
  - {name: soak, url: '%s', schedule: '@every %s', pace: {idle: 80%%, busy: 80%%}, release_credentials: {}}
classes:
  - {class: broken, match: ["soak:broken:*"], team: ops, release: "off"}
  - {class: auto, match: ["soak:auto:*"], team: ops, release: auto, proof: rule, dead_when: ["ttl/none"], auto_after: 1m, max_per_hour: 100000, many_per_minute: 100000}
  - {class: people, match: ["soak:people:*"], team: ops, release: approve, max_per_hour: 100000, many_per_minute: 100000}
  - {class: own, match: ["soak:own:*"], team: ops, release: "off"}
  - {class: unnamed, match: [%s], team: ops, release: "off"}
release: {max_per_hour: 100000, breaker_locks: 100000}
alert:
  drain_timeout: 500ms
  first_sweep: fire
  grouping: {by: [fingerprint], wait: 0s, interval: 0s}
  receivers:
    - {name: ops, kind: webhook, url: '%s', allow_private: true, timeout: 5s}
metrics: {listen: '127.0.0.1:0'}
console: {listen: '127.0.0.1:0', users_file: '%s', rate: {per_second: 1000}}
store: {dsn: '%s'}
`

// fault is one thing that was broken, and whether an agent reported it.
type fault struct {
	kind     string
	what     string
	at       time.Duration
	took     time.Duration
	blind    float64 // seconds reported since
	swept    bool    // another agent, or another life, has the target and has swept it
	reported bool
}

// run is all that happens.
type run struct {
	t        *testing.T
	servers  *servers
	load     *load
	broken   *broken
	people   *people
	ear      *ear
	all      *samples
	replicas []*testagent.Agent
	faults   []fault

	filled, took time.Duration
	first        time.Duration // until the first sweep had ended
	schedule     string
	lost         int
	reversed     int
	gone         int
	goneNames    []string
	robbed       int
	requests     map[string]int
	missed       float64
	most         float64       // locks that an agent reported
	delay        time.Duration // the longest that an agent reported
	stretches    []stretch
}

func TestSoak(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs servers, and time")
	}
	pg := testpg.Start(t)
	r := &run{t: t, servers: newServers(t), ear: newEar(t), requests: map[string]int{}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began := time.Now()
	r.load = &load{t: t, rdb: r.servers.cluster.Client(t), layouts: layouts(t)}
	some, none := formatNames(t, r.load.layouts)
	t.Logf("%d layouts of %d formats; none of %q", len(r.load.layouts), len(some), none)
	if len(some) == 0 {
		t.Error("no lock of a format can be made")
	}
	r.people = newPeople(t)
	r.load.fill(ctx)
	r.filled = time.Since(began)
	t.Logf("%d locks after %s", *locks, r.filled.Round(time.Second))

	schedule := "1m"
	if *length < time.Minute {
		schedule = "2s"
	}
	r.schedule = schedule
	text := fmt.Sprintf(configuration, r.servers.cluster.URL(), schedule, patterns(r.load.layouts), r.ear.url, r.people.file, pg.DSN())
	for i := range 2 {
		a := newReplica(t, fmt.Sprintf("r%d", i+1), text)
		a.Start()
		r.replicas = append(r.replicas, a)
	}
	st, err := store.Open(ctx, pg.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()

	ending := make(chan struct{})
	r.broken = &broken{t: t, rdb: r.load.rdb, ear: r.ear, ending: ending}
	r.all = &samples{began: time.Now(), last: map[string]float64{}}
	loading, unload := context.WithCancel(ctx)
	var background, breaking sync.WaitGroup
	background.Go(func() { r.load.run(loading) })
	background.Go(func() { r.all.run(loading, r.replicas) })
	r.swept(ctx, 0)
	r.first = time.Since(r.all.began)
	t.Logf("first sweep after %s", r.first.Round(time.Second))
	for i := range 3 {
		breaking.Go(func() { r.broken.live(ctx, i, false) })
	}
	p := r.people
	p.rdb, p.ear, p.ending, p.patience = r.load.rdb, r.ear, ending, 30*time.Second
	p.agents = func() []*testagent.Agent { return r.replicas }
	breaking.Go(func() { p.live(ctx, r.broken) })
	if *length >= 5*time.Minute {
		breaking.Go(func() { r.broken.live(ctx, 9, true) })
	}
	r.disturb(ctx)
	close(ending)
	breaking.Wait()
	r.took = time.Since(r.all.began)
	unload()
	background.Wait()
	for _, a := range r.replicas {
		a.End()
	}
	r.servers.whole()
	wrong := r.verdict(context.WithoutCancel(ctx), st)
	for _, w := range wrong {
		t.Error(w)
	}
	t.Log("\n" + r.report(wrong))
	r.write(wrong)
}

// away is how long an agent is frozen, and twice as long as it is dead: longer than
// its lease of 2 s.
func away() time.Duration {
	if *length < time.Minute {
		return 4 * time.Second
	}
	return 10 * time.Second
}

// leader is an agent that has the target, and the state of the target there.
func (r *run) leader(ctx context.Context) (*testagent.Agent, sample, bool) {
	for _, a := range r.replicas {
		if s, ok := r.all.ask(ctx, a); ok && s.leads {
			return a, s, true
		}
	}
	return nil, sample{}, false
}

// swept waits until a complete sweep of an agent that has the target began after a
// moment, at least, and names the agent's life.
func (r *run) swept(ctx context.Context, after float64) (a *testagent.Agent, s sample) {
	r.t.Helper()
	testEventually(r.t, func() bool {
		var ok bool
		a, s, ok = r.leader(ctx)
		return ok && s.sweeps > after
	}, "an agent has swept the target")
	return a, s
}

// disturb breaks things until the time is over.
func (r *run) disturb(ctx context.Context) {
	r.t.Helper()
	rng := rand.New(rand.NewPCG(*seed, 7))
	kinds := []string{"agent frozen", "slots moved", "failover", "agent killed", "agent frozen briefly", "slots moved"}
	for i := 0; ; i++ {
		left := *length - time.Since(r.all.began)
		// Each kind of fault is done once, however slow the machine is.
		if (left < *between && i >= 4) || ctx.Err() != nil {
			return
		}
		select {
		case <-time.After(*between):
		case <-ctx.Done():
			return
		}
		r.fault(ctx, kinds[i%len(kinds)], rng)
	}
}

// fault breaks one thing, heals it, and waits until agents have said what they did
// not see.
func (r *run) fault(ctx context.Context, kind string, rng *rand.Rand) {
	r.t.Helper()
	a, was := r.swept(ctx, 0)
	f := fault{kind: kind, at: time.Since(r.all.began)}
	blind, began := r.all.blind(), time.Now()
	must := true // somebody must have something to tell
	switch kind {
	case "agent frozen", "agent frozen briefly":
		f.what = a.Name
		long := away()
		if kind == "agent frozen briefly" {
			long, must = time.Second, false // shorter than its lease: it keeps the target, and its watch
		}
		a.Freeze()
		<-time.After(long)
		a.Thaw()
	case "agent killed":
		// The first one lives as long as the run.
		a = r.replicas[1]
		must = was.agent == a.Name
		f.what = a.Name
		a.Kill()
		<-time.After(away() / 2)
		a.Start()
	case "failover":
		f.what = r.servers.failOver(rng)
	case "slots moved":
		must = false // they move under the eyes of the watch
		f.what = r.servers.reshard(rng, 20)
	}
	f.took = time.Since(began)
	after, s := r.swept(ctx, float64(time.Now().UnixMilli())/1000)
	if f.swept = after.Name != was.agent || s.life != was.life; !must {
		f.reported = true
	}
	deadline := time.Now().Add(time.Minute)
	for {
		f.blind = r.all.blind() - blind
		f.reported = f.reported || f.blind > 0 || f.swept && kind != "failover"
		if f.reported || time.Now().After(deadline) || ctx.Err() != nil {
			break
		}
		<-time.After(time.Second)
		r.leader(ctx)
	}
	r.faults = append(r.faults, f)
	r.t.Logf("%s %s: %s, %s, blind %.1f s", f.at.Round(time.Second), f.kind, f.what, f.took.Round(100*time.Millisecond), f.blind)
}
