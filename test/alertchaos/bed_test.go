package alertchaos_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testagent"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// within is how long nothing new may arrive while something is still to be reported, on a
// loaded machine. How long all of it takes is a matter of how much waits by then.
const within = 90 * time.Second

// settings are what runs differ in.
type settings struct {
	grouping string
	// disk has the store's disk fill up once.
	disk bool
	// forgetful empties the queue at each kill: the control.
	forgetful bool
}

// bed is one run.
type bed struct {
	t     *testing.T
	s     settings
	rng   *rand.Rand
	world *world
	ears  []*ear
	disk  *disk
	db    string
	agent *testagent.Agent

	// committed are all transitions that a store had when its agent was killed.
	committed map[string]committed
	killed    int
	full      bool
}

func newBed(t *testing.T, s settings) *bed {
	t.Helper()
	n := *seed
	if n == 0 {
		n = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", n)
	srv := testredis.Start(t)
	b := &bed{
		t: t, s: s, rng: rand.New(rand.NewPCG(n, 1)), disk: newDisk(t, s.disk),
		world:     &world{t: t, rdb: srv.Client(t), broken: map[lockRule]bool{}},
		ears:      []*ear{newEar(t, "ops"), newEar(t, "chat")},
		committed: map[string]committed{},
	}
	dir := t.TempDir()
	b.db = filepath.Join(b.disk.dir, "store.db")
	var text strings.Builder
	text.WriteString(`targets: [{name: main, url: '` + srv.URL() + `', schedule: '@every 1s', pace: {idle: 50%, busy: 50%}}]
classes:
  - {class: orders, match: ["lock:order:*"], team: checkout}
  - {class: long, match: ["lock:long:*"]}
rules:
  - {rule: custom/long, when: "lock.ttl > duration('2h')", severity: warning, summary: taken for hours, remedy: take it for less}
metrics: {listen: '127.0.0.1:0'}
console: {listen: '127.0.0.1:0', users_file: '` + dir + `/users.yaml'}
store: {dsn: 'sqlite:` + b.db + `'}
alert:
  first_sweep: fire
  grouping: ` + s.grouping + `
  receivers:
`)
	for _, e := range b.ears {
		fmt.Fprintf(&text, "    - {name: %s, kind: webhook, url: '%s', allow_private: true, timeout: 500ms}\n", e.name, e.URL)
	}
	b.agent = testagent.New(t, testagent.Options{Name: "agent", Config: text.String()})
	return b
}

// life runs one agent and kills it: at any moment, or when a request has just come
// in and is not answered yet.
func (b *bed) life() {
	b.t.Helper()
	b.agent.Begin()
	if b.rng.IntN(4) > 0 { // else it may not even have started
		select {
		case <-b.agent.Up():
		case <-b.agent.Done():
		}
	}
	most := time.After(time.Duration(b.rng.IntN(1500)) * time.Millisecond)
	if e := b.ears[b.rng.IntN(len(b.ears))]; b.rng.IntN(2) == 0 {
		drain(e.arrived)
		most = time.After(3 * time.Second)
		for range 1 + b.rng.IntN(20) {
			select {
			case <-e.arrived:
				continue
			case <-most:
			case <-b.agent.Done():
			}
			break
		}
	} else {
		select {
		case <-most:
		case <-b.agent.Done():
		}
	}
	if b.agent.Kill() {
		b.killed++
	} else if !b.full {
		b.t.Fatal("the agent ended by itself")
	}
	b.look()
}

func drain(c chan struct{}) {
	select {
	case <-c:
	default:
	}
}

// play kills the agent so often while everything breaks, and returns when all is
// well again and was reported.
func (b *bed) play(times int) {
	b.t.Helper()
	stop := make(chan struct{})
	var all sync.WaitGroup
	calm := sync.OnceFunc(func() { close(stop); all.Wait() })
	defer calm()
	turns := rand.New(rand.NewPCG(b.rng.Uint64(), 2))
	all.Go(func() { b.world.run(turns, stop) })
	for _, e := range b.ears {
		flaps := rand.New(rand.NewPCG(b.rng.Uint64(), 3))
		all.Go(func() { e.flap(flaps, stop) })
	}
	fills := times / 3
	filled := make(chan struct{})
	for b.killed < times && !b.t.Failed() {
		switch {
		case !b.disk.small:
		case b.killed == fills && !b.full:
			b.full = true
			after := time.Duration(b.rng.IntN(2000)) * time.Millisecond
			all.Go(func() { defer close(filled); pause(after); b.disk.fill(b.t) })
		case b.killed >= fills+2 && b.full:
			<-filled // two lives may be short
			b.disk.free(b.t)
			b.full, fills = false, -1
		}
		b.life()
	}
	if b.full {
		<-filled
		b.disk.free(b.t)
		b.full = false
	}
	calm()
	b.agent.Begin()
	b.settle()
	b.agent.Kill()
	b.look()
}

// settle waits until all that is to be reported arrived.
func (b *bed) settle() {
	b.t.Helper()
	began := time.Now()
	said := func(what string) {
		b.t.Logf("%s %s after the last start", what, time.Since(began).Round(time.Millisecond))
	}
	// What waits for a receiver that failed often is due at once after a reload.
	select {
	case <-b.agent.Up():
	case <-b.agent.Done():
		b.t.Fatal("the agent ended by itself")
	}
	b.agent.Signal(syscall.SIGHUP)
	// A lock that breaks last, as a mark.
	mark := lockRule{"lock:long:last", "custom/long"}
	if err := b.world.rdb.Set(b.t.Context(), mark.key, "0123456789abcdef", 3*time.Hour).Err(); err != nil {
		b.t.Fatal(err)
	}
	b.world.mu.Lock()
	b.world.broken[mark] = true
	b.world.mu.Unlock()
	for _, e := range b.ears {
		b.eventually(func() bool { return latest(e.got())[mark] }, e.name+" is notified of nothing more")
	}
	said("both are notified again")
	if !b.s.forgetful {
		truth := b.world.truth()
		for _, e := range b.ears {
			b.eventually(func() bool { return len(b.wrong(truth, e)) == 0 }, e.name+" does not know what is so")
		}
	}
	said("both know what is so")
	b.eventually(func() bool { return b.waiting() == 0 }, "something waits to be reported")
	said("nothing waits")
}

// wrong are the locks of which a receiver does not know what is so. Where the disk was
// full it leaves out what the receiver was last notified of from memory: the agent that
// was killed then has forgotten that (docs/alerting.md), and what has changed back before
// the next one looked is reported no more.
func (b *bed) wrong(truth map[lockRule]bool, e *ear) []string {
	got := e.got()
	known := latest(got)
	if !b.disk.small || len(differs(truth, known)) == 0 {
		return differs(truth, known)
	}
	written := b.written()
	truth = maps.Clone(truth)
	var forgotten []string
	for l, t := range last(got) {
		if _, before := b.committed[t.event]; !before && !written[t.event] && truth[l] != known[l] {
			forgotten = append(forgotten, t.rule+" "+t.key+" "+t.status)
			truth[l] = known[l]
		}
	}
	out := differs(truth, known)
	if len(out) == 0 {
		b.t.Logf("%s was last notified from memory alone: %v", e.name, forgotten)
	}
	return out
}

func (b *bed) eventually(ok func() bool, what string) {
	b.t.Helper()
	timeout := time.NewTimer(within)
	defer timeout.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for arrived := -1; !ok(); {
		if n := b.arrived(); n > arrived {
			arrived = n
			timeout.Reset(within)
		}
		select {
		case <-timeout.C:
			for _, e := range b.ears {
				b.t.Logf("%s: %d requests; what is so and what it knows differ in: %v", e.name, len(e.got()), differs(b.world.truth(), latest(e.got())))
			}
			b.explain()
			b.t.Fatalf("%s, and nothing new arrived for %s; %d wait", what, within, b.waiting())
		case <-b.agent.Done():
			b.t.Fatalf("%s: the agent ended by itself", what)
		case <-tick.C:
		}
	}
}

// arrived is how many transitions the receivers have taken, each once.
func (b *bed) arrived() int {
	n := 0
	for _, e := range b.ears {
		seen := map[string]bool{}
		for _, d := range e.got() {
			if !d.accepted {
				continue
			}
			for _, one := range d.reported {
				seen[one.event] = true
			}
		}
		n += len(seen)
	}
	return n
}
