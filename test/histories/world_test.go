package histories_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source/redis/connect"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// lane is a server on which histories are played one after the other.
type lane struct {
	ctx   context.Context
	db    *redis.Client
	clock *testredis.Clock
	conn  *connect.Conn
	now   time.Time // where the last history ended
}

func newLane(t *testing.T) *lane {
	t.Helper()
	// OBJECT IDLETIME goes by a clock that the server reads with its own timer.
	srv, clock := testredis.StartClocked(t, testredis.WithConfig("hz 500", "dynamic-hz no"))
	conn, err := connect.Open(connect.Config{URL: srv.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	// An old server: of a young one it is not known what was lost with the process
	// before it, and verdicts of death pause.
	return &lane{ctx: t.Context(), db: srv.Client(t), clock: clock, conn: conn, now: time.Now().Add(30 * 24 * time.Hour)}
}

// hold is what stands under the key of a lock: one hold of one user.
type hold struct {
	shape // of the lock as it was written; family "" is our own format

	taken   time.Time
	tells   bool          // the value tells a time
	lease   time.Duration // what each renewal gives
	expires time.Time     // zero: never
	begins  time.Time     // when the EXPIRE after SETNX arrives; zero: none is on its way
	every   time.Duration // between renewals; 0: none
	renewed time.Time     // last renewal, or taken
	touched time.Time     // last command of a user on the key
	stuck   bool          // nobody will ever renew or release it

	own *ownHold // nil for other libraries
}

// token is what a user of another library wrote, and the fixture that it is of.
type token struct{ fixture, written shape }

// world is what really happens in one history.
type world struct {
	*lane
	rng     *rand.Rand
	plan    plan
	now     time.Time
	began   time.Time
	agent   *observer
	skew    time.Duration // of the agent's clock
	recheck time.Time     // when the agent reads pending locks again; zero: not
	idle    int64         // the second that the server's idle clock is known to show

	holds     map[string]*hold
	noise     map[string]bool
	tokens    map[string]token // by key: of the last user of another library
	processes []*process
	waits     []*wait
	losses    []*loss
	listening *redis.PubSub

	truth truth
	text  []string
}

// violation is what a look reported that is not true, or did not tell that is.
type violation string

// fail ends the history.
func (w *world) fail(format string, args ...any) {
	panic(violation(fmt.Sprintf(format, args...) + "\n\nThe history:\n" + strings.Join(w.text, "\n")))
}

// must ends the history by trouble that is no verdict.
func (w *world) must(err error) {
	if err != nil {
		w.fail("the test itself failed: %v", err)
	}
}

// tell writes down what happens.
func (w *world) tell(format string, args ...any) {
	w.text = append(w.text, fmt.Sprintf("%12s  ", w.now.Sub(w.began).Round(time.Millisecond))+fmt.Sprintf(format, args...))
}

// classNames are the classes of a history: each of the fixtures' keys is in one of
// them or in none.
var classNames = []string{"", "short", "long", "required", "allowed"}

// plan says which class a key is in.
type plan struct {
	set *class.Set
	of  map[string]string
}

// ancient is the expression of dead_when by which the class "long" calls a lock
// dead, and forsaken that of "short".
const (
	ancient  = "lock.age > duration('10m')"
	forsaken = "!lock.has_ttl && lock.idle > duration('20m')"
)

// newPlan puts each key into a class.
func newPlan(keys []string, rng *rand.Rand) (plan, error) {
	p := plan{of: map[string]string{}}
	classes := map[string]*class.Class{
		"short":    {Name: "short", Expect: 30 * time.Second, DeadWhen: []string{forsaken}},
		"long":     {Name: "long", Expect: 5 * time.Minute, DeadWhen: []string{"holder/dead", ancient}},
		"required": {Name: "required", TTL: class.TTLRequired, Expect: 90 * time.Second},
		"allowed":  {Name: "allowed", TTL: class.TTLAllowedNone},
	}
	for _, key := range keys {
		name := classNames[rng.IntN(len(classNames))]
		p.of[key] = name
		if name != "" {
			classes[name].Match = append(classes[name].Match, literal(key))
		}
	}
	var list []class.Class
	for _, name := range classNames[1:] {
		if c := classes[name]; len(c.Match) > 0 {
			list = append(list, *c)
		}
	}
	var err error
	p.set, err = class.NewSet(list)
	return p, err
}

// literal is a pattern that matches one key.
func literal(key string) string {
	var b strings.Builder
	for i := range len(key) {
		if strings.IndexByte(`*?[]\`, key[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(key[i])
	}
	return b.String()
}

// classOf is the class of a key as it is configured.
func (p *plan) classOf(key string) class.Class {
	c, _ := p.set.Get(cmp.Or(p.of[key], class.Default))
	return c
}

// newWorld empties the lane and begins a history.
func (l *lane) newWorld(lib *library, seed uint64, skew time.Duration, spoil func(*observer)) *world {
	ctx := l.ctx
	w := &world{
		lane: l, rng: rand.New(rand.NewPCG(seed, 1)), skew: skew,
		holds: map[string]*hold{}, noise: map[string]bool{}, tokens: map[string]token{}, truth: newTruth(),
	}
	w.must(l.db.FlushAll(ctx).Err())
	w.now = l.now.Add(time.Hour).Truncate(time.Second)
	w.began = w.now
	l.clock.Freeze(w.now)
	w.listening = l.db.Subscribe(ctx, "histories")
	_, err := w.listening.Receive(ctx)
	w.must(err)
	w.plan, err = newPlan(slices.Concat(lib.keys, ownKeys), w.rng)
	w.must(err)
	w.agent = &observer{
		conn: l.conn, classes: w.plan.set, clock: func() time.Time { return w.now.Add(w.skew) },
		store: newMemory(),
	}
	if spoil != nil {
		spoil(w.agent)
	}
	w.must(w.agent.start())
	return w
}

// end leaves the lane to the next history.
func (w *world) end() {
	w.lane.now = w.now
	// The next history has processes of the same names.
	for _, p := range w.processes {
		w.unlisten(p)
	}
	w.must(w.listening.Close())
}

// advance lets time pass, and reads locks again when the agent would.
func (w *world) advance(d time.Duration) {
	to := w.now.Add(d)
	if at := w.recheck; !at.IsZero() && !at.After(to) {
		w.recheck = time.Time{}
		w.pass(at)
		w.lookAgain()
	}
	w.pass(to)
}

// pass writes all that happens by itself until a moment, then moves the clock
// there, and ends what has expired.
func (w *world) pass(to time.Time) {
	if !to.After(w.now) {
		return
	}
	w.resume(to)
	pipe := w.db.Pipeline()
	for _, key := range slices.Sorted(maps.Keys(w.holds)) {
		w.holds[key].pass(w.ctx, pipe, to)
	}
	for _, p := range w.processes {
		p.pass(w.ctx, pipe, to)
	}
	w.passWaits(pipe, to)
	_, err := pipe.Exec(w.ctx)
	w.must(err)
	w.now = to
	w.clock.Freeze(to)
	for _, key := range slices.Sorted(maps.Keys(w.holds)) {
		// Redis: a key is there until after the millisecond of its expiry.
		if h := w.holds[key]; !h.expires.IsZero() && w.now.After(h.expires) {
			w.tell("  has expired: %s", h)
			w.lose(h)
			w.over(h)
		}
	}
}

// pass renews a hold as its holder does, and gives it the TTL that was on its way.
func (h *hold) pass(ctx context.Context, pipe redis.Pipeliner, to time.Time) {
	if !h.begins.IsZero() && !h.begins.After(to) {
		h.expires, h.touched = h.begins.Add(h.lease), h.begins
		h.begins = time.Time{}
		pipe.PExpireAt(ctx, h.key, h.expires)
	}
	if h.stuck || h.every == 0 {
		return
	}
	first := h.renewed.Add(h.every)
	if h.own != nil && h.own.process.pausedUntil.After(first) {
		first = h.own.process.pausedUntil
	}
	if first.After(to) || !h.expires.IsZero() && first.After(h.expires) {
		return // not yet, or too late
	}
	n := to.Sub(first) / h.every
	at := first.Add(n * h.every)
	if h.own == nil && h.typ == "zset" {
		h.renewedAt(h.renewed, at)
		for _, m := range h.list {
			pipe.ZAdd(ctx, h.key, redis.Z{Score: m.Score, Member: m.Name})
		}
	}
	h.renewed, h.touched = at, at
	// Our own library never shortens a lease that somebody made longer.
	if end := at.Add(h.lease); h.own == nil || h.expires.IsZero() || end.After(h.expires) {
		h.expires = end
	}
	pipe.PExpireAt(ctx, h.key, h.expires)
	if h.own != nil {
		h.own.renew(ctx, pipe, h, int64(n)+1)
	}
}

// settle waits until the server's idle clock shows this second: what is written
// now would else count as idle since an earlier one.
func (w *world) settle() {
	second := w.now.Unix() & (1<<24 - 1)
	for w.idle != second {
		info, err := w.db.Info(w.ctx, "server").Result()
		w.must(err)
		if strings.Contains(info, fmt.Sprintf("lru_clock:%d\r\n", second)) {
			w.idle = second
		}
	}
}

// write puts a lock of another library under its key.
func (w *world) write(h *hold) {
	w.settle()
	pipe := w.db.Pipeline()
	pipe.Del(w.ctx, h.key)
	switch h.typ {
	case "string":
		pipe.Set(w.ctx, h.key, h.value, 0)
	case "hash":
		for _, name := range slices.Sorted(maps.Keys(h.fields)) {
			pipe.HSet(w.ctx, h.key, name, h.fields[name])
		}
	default:
		for _, m := range h.list {
			switch h.typ {
			case "zset":
				pipe.ZAdd(w.ctx, h.key, redis.Z{Score: m.Score, Member: m.Name})
			case "set":
				pipe.SAdd(w.ctx, h.key, m.Name)
			case "list":
				pipe.RPush(w.ctx, h.key, m.Name)
			}
		}
	}
	if !h.expires.IsZero() {
		pipe.PExpireAt(w.ctx, h.key, h.expires)
	}
	h.writeAuxiliary(w.ctx, pipe)
	_, err := pipe.Exec(w.ctx)
	w.must(err)
	w.holds[h.key] = h
}

// over is the end of a hold: nothing of it stands under the key any more, or
// something else is about to.
func (w *world) over(h *hold) {
	delete(w.holds, h.key)
	for key := range h.beside {
		w.must(w.db.Del(w.ctx, key).Err())
	}
}

// String names the hold for the text of a history.
func (h *hold) String() string {
	who := h.family + "/" + h.file
	if h.own != nil {
		who = fmt.Sprintf("ours %s of %s in %s", h.own.id, h.own.session, h.own.process.id)
	}
	return fmt.Sprintf("%q (%s, ttl %s)", h.key, who, h.left())
}

func (h *hold) left() string {
	if h.expires.IsZero() {
		return "none"
	}
	return h.lease.String()
}

// writeAuxiliary puts the keys beside the lock that its format asks for: queues,
// fences.
func (h *hold) writeAuxiliary(ctx context.Context, pipe redis.Pipeliner) {
	for _, ask := range formats.AuxiliaryReads(h.sample(h.lease)) {
		b, ok := h.beside[ask.Key]
		if !ok {
			continue
		}
		pipe.Del(ctx, ask.Key)
		if ask.Type == "string" {
			pipe.Set(ctx, ask.Key, b.Value, 0)
			continue
		}
		for i := range b.Size {
			switch name := fmt.Sprintf("member-%d", i); ask.Type {
			case "list":
				pipe.RPush(ctx, ask.Key, name)
			case "hash":
				pipe.HSet(ctx, ask.Key, name, "1")
			case "zset":
				pipe.ZAdd(ctx, ask.Key, redis.Z{Member: name})
			}
		}
	}
}
