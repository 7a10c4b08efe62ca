package releaser_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// followRounds is how often each lock is raced for after its release; `make chaos`
// does five times as much.
const followRounds = 6

// TestWhatFollowsARaceForTheLock: two agents undo a release, one lifts what it put
// in the lock's place, and the next holder tries to get the lock, all at once, for
// every format that can be undone. The next holder's lock is never touched, a lock
// comes back at most once, and what was reported is what stands there.
func TestWhatFollowsARaceForTheLock(t *testing.T) {
	t.Parallel()
	all, _ := specimens(t)
	var list []specimen
	for _, s := range all {
		if formats.WhyNoUndo(formats.Recognise(s.sample).Format) == "" {
			list = append(list, s)
		}
	}
	srv := testredis.Start(t)
	f := &followRace{t: t, seen: map[string]int{}}
	for i := range f.clients {
		f.clients[i] = srv.Client(t)
	}
	rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test's own
	rounds := followRounds * max(1, *races/20_000)
	for n := range rounds {
		for i, s := range list {
			f.round(s.in(fmt.Sprintf("%d:%d", n, i)), n%2 == 1, rng)
		}
	}
	t.Logf("%d races over %d locks: %v", rounds*len(list), len(list), f.seen)
	for _, what := range []string{"undone", "lifted", "taken", "undone after a lift"} {
		if f.seen[what] < 20 {
			t.Errorf("%q happened %d times: the races are none", what, f.seen[what])
		}
	}
}

type followRace struct {
	t       *testing.T
	clients [4]*redis.Client
	mu      sync.Mutex
	seen    map[string]int
}

func (f *followRace) count(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen[what]++
}

// content is all that stands under the key of a specimen; "" for nothing.
func (f *followRace) content(s specimen) string {
	f.t.Helper()
	ctx, c, key := f.t.Context(), f.clients[3], s.sample.Key
	var parts []string
	switch kind := c.Type(ctx, key).Val(); kind {
	case "none":
		return ""
	case "string":
		parts = []string{c.Get(ctx, key).Val()}
	case "hash":
		for field, value := range c.HGetAll(ctx, key).Val() {
			parts = append(parts, field+"="+value)
		}
	case "set":
		parts = c.SMembers(ctx, key).Val()
	case "zset":
		for _, z := range c.ZRangeWithScores(ctx, key, 0, -1).Val() {
			parts = append(parts, fmt.Sprint(z.Member, "=", z.Score))
		}
	default:
		f.t.Errorf("%s: a %s", s.name, kind)
	}
	slices.Sort(parts)
	return strings.Join(parts, "\n")
}

func (f *followRace) run(c *redis.Client, command formats.Command, err error) formats.Reply {
	var raw any
	if err == nil {
		raw, err = c.Eval(f.t.Context(), command.Script, command.Keys, command.Args...).Result()
	}
	var out formats.Reply
	if err == nil {
		out, err = formats.ParseReply(raw)
	}
	if err != nil {
		f.t.Error(err)
	}
	return out
}

func (f *followRace) round(s specimen, stands bool, rng *rand.Rand) {
	t, ctx, key := f.t, f.t.Context(), s.sample.Key
	name := formats.Recognise(s.sample).Format
	d, _ := formats.Get(name)
	write := func(owner string) string {
		if _, err := f.clients[3].Pipelined(ctx, func(p redis.Pipeliner) error {
			s.auxiliary(ctx, p)
			s.write(ctx, p, time.Now().UnixMilli()+600_000, owner)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return f.content(s)
	}
	next := write("z")
	dump := f.clients[3].Dump(ctx, key).Val()
	first := write("")
	at := testredis.ExpireAt(t, f.clients[3], key)
	stands = stands && formats.WhyNoPlaceholder(name, at) == ""
	how := formats.Release{RequestID: "of", ExpireAt: at, Undo: time.Minute}
	if stands {
		how.Placeholder = time.Minute
	}
	command, err := d.Release(s.sample, how)
	if r := f.run(f.clients[3], command, err); r.Outcome != formats.OutcomeReleased {
		t.Fatalf("%s: %+v", s.name, r)
	}
	between := f.content(s)

	var wg sync.WaitGroup
	var undone [2]formats.Reply
	var lifted formats.Reply
	taken := false
	pause := func() func() {
		pings := rng.IntN(3)
		return func() {
			for range pings {
				f.clients[3].Ping(context.WithoutCancel(ctx))
			}
		}
	}
	for i := range undone {
		wait := pause()
		wg.Go(func() {
			wait()
			command, err := formats.Undo(name, key, "of", formats.Release{RequestID: fmt.Sprint("undo", i), ExpireAt: at})
			undone[i] = f.run(f.clients[i], command, err)
		})
	}
	if wait := pause(); stands {
		wg.Go(func() {
			wait()
			command, err := formats.Lift(name, key, "of", formats.Release{RequestID: "lift"})
			lifted = f.run(f.clients[2], command, err)
		})
	}
	wait := pause()
	wg.Go(func() {
		wait()
		for range 3 { // RESTORE takes a key only where there is none
			if taken = f.clients[3].Restore(ctx, key, 10*time.Minute, dump).Err() == nil; taken {
				return
			}
		}
	})
	wg.Wait()

	times := 0
	for _, r := range undone {
		if r.Outcome == formats.OutcomeReleased {
			times++
		}
	}
	freed := lifted.Outcome == formats.OutcomeReleased
	want := between
	switch {
	case times > 1 || times == 1 && taken:
		t.Errorf("%s: undone %d times, and the next holder got it: %t (%+v, %+v)", s.name, times, taken, undone, lifted)
	case times == 1:
		want = first
		f.count("undone")
		if freed {
			f.count("undone after a lift")
		}
		if got := testredis.ExpireAt(t, f.clients[3], key); got != at {
			t.Errorf("%s: undone, and expires at %d, want %d", s.name, got, at)
		}
	case taken:
		want = next
		f.count("taken")
		if stands && !freed {
			t.Errorf("%s: the next holder got what was taken over: %+v", s.name, lifted)
		}
	case freed:
		want = ""
	}
	if freed {
		f.count("lifted")
	}
	if got := f.content(s); got != want {
		t.Errorf("%s: there stands %q, want %q (undo %+v, lift %+v, taken %t)", s.name, got, want, undone, lifted, taken)
	}
	if formats.OutcomeAlreadyGone == lifted.Outcome && stands && times == 0 {
		t.Errorf("%s: lifted %+v, but nobody took it away", s.name, lifted)
	}
}
