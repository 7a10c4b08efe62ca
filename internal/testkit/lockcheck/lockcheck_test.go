package lockcheck_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/locksteward/locksteward/internal/testkit/lockcheck"
)

type hold = lockcheck.Hold

// held is a hold of lock "k" that was acquired over [from, from+1] and released
// over [to, to+1].
func held(id string, fence, from, to int64) hold {
	return hold{
		Lock: "k", ID: id, Client: "c-" + id, Fence: fence, Invoked: from, Acquired: from + 1, Until: to + 1000,
		ReleaseSent: to, ReleaseDone: to + 1, Outcome: lockcheck.Released,
	}
}

// expired is one that was never released and whose lease was over at until.
func expired(id string, fence, from, until int64) hold {
	return hold{Lock: "k", ID: id, Client: "c-" + id, Fence: fence, Invoked: from, Acquired: from + 1, Until: until}
}

func with(h hold, change func(*hold)) hold {
	change(&h)
	return h
}

func failed(outcome lockcheck.Outcome, holder string, from, to int64) lockcheck.Attempt {
	return lockcheck.Attempt{Lock: "k", Client: "f", Invoked: from, Returned: to, Outcome: outcome, Holder: holder}
}

func wrote(id string, fence, seq, from, to int64) lockcheck.Write {
	return lockcheck.Write{Lock: "k", Hold: id, Fence: fence, Called: from, Done: to, Outcome: lockcheck.Accepted, Seq: seq}
}

func rejected(fence, stored int64) lockcheck.Write {
	return lockcheck.Write{Lock: "k", Fence: fence, Outcome: lockcheck.Rejected, Stored: stored}
}

// want compares the number of violations with what a case asks for.
func want(t *testing.T, bad bool, got []lockcheck.Violation) {
	t.Helper()
	if (len(got) > 0) != bad {
		t.Errorf("got %v, want violations: %v", got, bad)
	}
	for _, v := range got {
		if v.Lock != "k" || !strings.Contains(v.String(), `"k"`) {
			t.Errorf("%s does not name the lock", v)
		}
	}
}

func TestOverlaps(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		bad   bool
		holds []hold
	}{
		"nothing":                   {false, nil},
		"one after the other":       {false, []hold{held("a", 1, 0, 10), held("b", 2, 12, 20)}},
		"acquire overlaps release":  {false, []hold{held("a", 1, 0, 10), held("b", 2, 5, 20), held("c", 3, 21, 22)}[:1]},
		"waited through the hold":   {false, []hold{held("a", 1, 0, 10), with(held("b", 2, 2, 30), func(h *hold) { h.Acquired = 10 })}},
		"began at the very end":     {false, []hold{expired("a", 1, 0, 10), held("b", 2, 9, 20)}},
		"two at once":               {true, []hold{held("a", 1, 0, 10), held("b", 2, 5, 20)}},
		"one inside another":        {true, []hold{held("a", 1, 0, 100), held("b", 2, 5, 7)}},
		"third in the first":        {true, []hold{held("a", 1, 0, 100), with(held("b", 2, 1, 2), func(h *hold) { h.Acquired, h.Until = 1, 1 }), held("c", 3, 50, 60)}},
		"before the lease is over":  {true, []hold{expired("a", 1, 0, 50), held("b", 2, 40, 60)}},
		"after the loss was seen":   {false, []hold{with(expired("a", 1, 0, 50), func(h *hold) { h.LossSeen = 30 }), held("b", 2, 40, 60)}},
		"another lock":              {false, []hold{held("a", 1, 0, 10), with(held("b", 2, 5, 20), func(h *hold) { h.Lock = "l" })}},
		"in any order of recording": {true, []hold{held("b", 2, 5, 20), held("a", 1, 0, 10)}},
		"acquired too late":         {false, []hold{held("a", 1, 0, 100), with(expired("b", 2, 50, 40), func(h *hold) {})}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want(t, tc.bad, lockcheck.Overlaps(lockcheck.History{Holds: tc.holds}))
		})
	}
}

func TestLosses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		bad  bool
		hold hold
	}{
		"released":       {false, held("a", 1, 0, 10)},
		"at its end":     {false, with(expired("a", 1, 0, 50), func(h *hold) { h.LossSeen = 50 })},
		"before its end": {true, with(expired("a", 1, 0, 50), func(h *hold) { h.LossSeen = 49 })},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want(t, tc.bad, lockcheck.Losses(lockcheck.History{Holds: []hold{tc.hold}}))
		})
	}
}

func TestFences(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		bad   bool
		holds []hold
	}{
		"growing":                {false, []hold{held("a", 1, 0, 10), held("b", 7, 12, 20)}},
		"concurrent, either way": {false, []hold{with(held("a", 9, 0, 10), func(h *hold) { h.Acquired = 30 }), held("b", 7, 12, 20)}},
		"falling":                {true, []hold{held("a", 7, 0, 10), held("b", 3, 12, 20)}},
		"falling, not the last":  {true, []hold{held("a", 7, 0, 1), held("b", 3, 12, 20), held("c", 9, 30, 31)}},
		"same":                   {true, []hold{held("a", 7, 0, 10), held("b", 7, 12, 20)}},
		"same and concurrent":    {true, []hold{with(held("a", 7, 0, 10), func(h *hold) { h.Acquired = 30 }), held("b", 7, 12, 20)}},
		"none":                   {true, []hold{held("a", 0, 0, 10)}},
		"another lock":           {false, []hold{held("a", 7, 0, 10), with(held("b", 3, 12, 20), func(h *hold) { h.Lock = "l" })}},
		"even after expiry":      {true, []hold{expired("a", 7, 0, 10), held("b", 3, 1200, 2000)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want(t, tc.bad, lockcheck.Fences(lockcheck.History{Holds: tc.holds}))
		})
	}
}

func TestStore(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		bad    bool
		writes []lockcheck.Write
	}{
		"nothing":                       {false, nil},
		"growing":                       {false, []lockcheck.Write{wrote("a", 1, 1, 0, 1), wrote("a", 1, 2, 2, 3), wrote("b", 2, 3, 4, 5)}},
		"late write rejected":           {false, []lockcheck.Write{wrote("a", 1, 1, 0, 1), wrote("b", 2, 2, 2, 3), rejected(1, 2)}},
		"late write accepted":           {true, []lockcheck.Write{wrote("a", 1, 1, 0, 1), wrote("b", 2, 2, 2, 3), wrote("a", 1, 3, 4, 5)}},
		"late, recorded first":          {true, []lockcheck.Write{wrote("a", 1, 3, 4, 5), wrote("b", 2, 2, 2, 3)}},
		"late, after a fence between":   {true, []lockcheck.Write{wrote("a", 1, 1, 0, 1), wrote("c", 9, 2, 2, 3), wrote("c", 9, 3, 4, 5), wrote("b", 2, 4, 6, 7)}},
		"concurrent, either way":        {false, []lockcheck.Write{wrote("b", 2, 2, 0, 9), wrote("a", 1, 1, 0, 9)}},
		"numbers that lie":              {true, []lockcheck.Write{wrote("b", 2, 2, 0, 1), wrote("a", 1, 1, 5, 6)}},
		"two of one number":             {true, []lockcheck.Write{wrote("a", 1, 1, 0, 1), wrote("b", 2, 1, 5, 6)}},
		"rejected without a reason":     {true, []lockcheck.Write{rejected(2, 2)}},
		"unknown outcome says nothing":  {false, []lockcheck.Write{wrote("b", 2, 2, 2, 3), {Lock: "k", Fence: 1, Outcome: lockcheck.Unknown, Called: 9}}},
		"another lock has other fences": {false, []lockcheck.Write{wrote("b", 2, 1, 0, 1), {Lock: "l", Fence: 1, Seq: 1, Outcome: lockcheck.Accepted, Called: 5, Done: 6}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want(t, tc.bad, lockcheck.Store(tc.writes))
		})
	}
}

func TestServerView(t *testing.T) {
	t.Parallel()
	unknownRelease := func(h *hold) { h.Outcome = lockcheck.Unknown }
	lost := func(h *hold) { h.Outcome = lockcheck.Lost }
	for name, tc := range map[string]struct {
		bad, badWithDrops bool
		h                 lockcheck.History
	}{
		"nothing":                      {false, false, lockcheck.History{}},
		"one after the other":          {false, false, lockcheck.History{Holds: []hold{held("a", 1, 0, 10), held("b", 2, 12, 20)}}},
		"two at once":                  {true, false, lockcheck.History{Holds: []hold{held("a", 1, 0, 10), held("b", 2, 5, 20)}}},
		"acquired in a release":        {false, false, lockcheck.History{Holds: []hold{with(held("a", 1, 0, 10), func(h *hold) { h.ReleaseDone = 20 }), held("b", 2, 12, 30)}}},
		"after the end of the lease":   {false, false, lockcheck.History{Holds: []hold{expired("a", 1, 0, 50), held("b", 2, 51, 60)}}},
		"before the end of the lease":  {true, false, lockcheck.History{Holds: []hold{expired("a", 1, 0, 50), held("b", 2, 40, 45)}}},
		"fence falls":                  {true, true, lockcheck.History{Holds: []hold{held("a", 5, 0, 10), held("b", 4, 12, 20)}}},
		"released what was taken":      {true, false, lockcheck.History{Holds: []hold{with(held("a", 1, 0, 90), func(h *hold) { h.Until = 20 }), held("b", 2, 30, 40)}}},
		"unknown release frees":        {false, false, lockcheck.History{Holds: []hold{with(held("a", 1, 0, 10), unknownRelease), held("b", 2, 12, 20)}}},
		"unknown release frees later":  {false, false, lockcheck.History{Holds: []hold{with(held("a", 1, 0, 10), unknownRelease), held("b", 2, 500, 600)}}},
		"unknown release, still there": {false, false, lockcheck.History{Holds: []hold{with(held("a", 1, 0, 10), unknownRelease)}, Attempts: []lockcheck.Attempt{failed(lockcheck.Held, "a", 500, 501)}}},
		"lost while it was there":      {true, false, lockcheck.History{Holds: []hold{with(held("a", 1, 0, 10), lost)}}},
		"lost to another": {false, false, lockcheck.History{Holds: []hold{
			with(held("a", 1, 0, 100), func(h *hold) { lost(h); h.Until = 50 }), held("b", 2, 60, 70),
		}}},
		"reported who has it":        {false, false, lockcheck.History{Holds: []hold{held("a", 1, 0, 10)}, Attempts: []lockcheck.Attempt{failed(lockcheck.Held, "a", 5, 6)}}},
		"reported somebody has it":   {false, false, lockcheck.History{Holds: []hold{held("a", 1, 0, 10)}, Attempts: []lockcheck.Attempt{failed(lockcheck.Held, "", 5, 6)}}},
		"reported a released hold":   {true, false, lockcheck.History{Holds: []hold{held("a", 1, 0, 10)}, Attempts: []lockcheck.Attempt{failed(lockcheck.Held, "a", 20, 21)}}},
		"reported somebody, of none": {true, false, lockcheck.History{Holds: []hold{held("a", 1, 0, 10)}, Attempts: []lockcheck.Attempt{failed(lockcheck.Held, "", 20, 21)}}},
		"reported a stranger":        {true, true, lockcheck.History{Attempts: []lockcheck.Attempt{failed(lockcheck.Held, "x", 20, 21)}}},
		"reported an unknown acquire": {false, false, lockcheck.History{Attempts: []lockcheck.Attempt{
			failed(lockcheck.Unknown, "", 10, 15), failed(lockcheck.Held, "x", 20, 21),
		}}},
		"reported one that is yet to come": {true, true, lockcheck.History{Attempts: []lockcheck.Attempt{
			failed(lockcheck.Held, "x", 5, 6), failed(lockcheck.Unknown, "", 10, 15),
		}}},
		"unknown acquire inside a hold": {true, false, lockcheck.History{
			Holds:    []hold{held("a", 1, 0, 100)},
			Attempts: []lockcheck.Attempt{failed(lockcheck.Unknown, "", 10, 15), failed(lockcheck.Held, "x", 20, 21)},
		}},
		"reported a killed process":            {false, false, lockcheck.History{Killed: true, Attempts: []lockcheck.Attempt{failed(lockcheck.Held, "x", 20, 21)}}},
		"reported it is free":                  {false, false, lockcheck.History{Holds: []hold{held("a", 1, 0, 10)}, Attempts: []lockcheck.Attempt{failed(lockcheck.Queued, "", 20, 21)}}},
		"reported it is free while it is held": {true, false, lockcheck.History{Holds: []hold{held("a", 1, 0, 10)}, Attempts: []lockcheck.Attempt{failed(lockcheck.Queued, "", 4, 5)}}},
		"refused says nothing":                 {false, false, lockcheck.History{Attempts: []lockcheck.Attempt{failed(lockcheck.Refused, "", 20, 21)}}},
		"never reported its end":               {false, false, lockcheck.History{Holds: []hold{expired("a", 1, 0, 5)}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want(t, tc.bad, lockcheck.ServerView(tc.h, lockcheck.Rules{}))
			want(t, tc.badWithDrops, lockcheck.ServerView(tc.h, lockcheck.Rules{Drops: true}))
		})
	}
}

// A request that lay in a buffer may take a lock that was released, but not one
// that another has.
func TestServerViewStrays(t *testing.T) {
	t.Parallel()
	late := lockcheck.History{Holds: []hold{held("a", 1, 0, 10)}, Attempts: []lockcheck.Attempt{failed(lockcheck.Held, "a", 20, 21)}}
	want(t, true, lockcheck.ServerView(late, lockcheck.Rules{}))
	want(t, false, lockcheck.ServerView(late, lockcheck.Rules{Strays: true}))
	late.Holds = append(late.Holds, held("b", 2, 15, 30))
	want(t, true, lockcheck.ServerView(late, lockcheck.Rules{Strays: true}))
}

// Who waits in the queue may be handed the lock for a turn and not hear of it: then
// others are notified of it, until it gave up or got the lock another time.
func TestServerViewOfTheQueue(t *testing.T) {
	t.Parallel()
	gaveUp := func(queued bool) lockcheck.Attempt {
		a := failed(lockcheck.Held, "a", 5, 30)
		a.ID, a.Queued = "q", queued
		return a
	}
	later := with(held("q", 3, 5, 60), func(h *hold) { h.Acquired, h.Queued = 50, true })
	a, b := held("a", 1, 0, 10), held("b", 2, 35, 40)
	reported := func(from, to int64) lockcheck.Attempt { return failed(lockcheck.Held, "q", from, to) }
	for name, tc := range map[string]struct {
		bad      bool
		holds    []hold
		attempts []lockcheck.Attempt
	}{
		"reported one that gave up":                  {false, []hold{a, b}, []lockcheck.Attempt{gaveUp(true), reported(20, 21)}},
		"reported one that gave up, no queue":        {true, []hold{a, b}, []lockcheck.Attempt{gaveUp(false), reported(20, 21)}},
		"reported one after it gave up":              {true, []hold{a, b}, []lockcheck.Attempt{gaveUp(true), reported(31, 32)}},
		"reported one before it came":                {true, []hold{b}, []lockcheck.Attempt{gaveUp(true), reported(3, 4)}},
		"reported one while another has it":          {true, []hold{with(a, func(h *hold) { h.ReleaseSent, h.ReleaseDone = 28, 29 }), b}, []lockcheck.Attempt{gaveUp(true), reported(20, 21)}},
		"reported one that got it after another":     {false, []hold{a, b, later}, []lockcheck.Attempt{reported(20, 21)}},
		"reported one that got it after, no queue":   {true, []hold{a, b, with(later, func(h *hold) { h.Queued = false })}, []lockcheck.Attempt{reported(20, 21)}},
		"reported one that has released it":          {true, []hold{a, b, later}, []lockcheck.Attempt{reported(70, 71)}},
		"reported another that was not in the queue": {true, []hold{a, b}, []lockcheck.Attempt{gaveUp(true), failed(lockcheck.Held, "x", 20, 21)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want(t, tc.bad, lockcheck.ServerView(lockcheck.History{Holds: tc.holds, Attempts: tc.attempts}, lockcheck.Rules{}))
		})
	}
}

// A long history with many holds that may have ended by themselves is judged at
// once, and one bad step in it is found.
func TestServerViewScales(t *testing.T) {
	t.Parallel()
	var h lockcheck.History
	now := int64(0)
	for i := range int64(3000) {
		id := fmt.Sprint(i)
		switch i % 4 {
		case 0:
			h.Holds = append(h.Holds, expired(id, i+1, now, now+5))
		case 1:
			h.Holds = append(h.Holds, with(held(id, i+1, now, now+5), func(h *hold) { h.Outcome = lockcheck.Unknown }))
		default:
			h.Holds = append(h.Holds, held(id, i+1, now, now+5))
		}
		h.Attempts = append(h.Attempts, failed(lockcheck.Held, id, now+2, now+3), failed(lockcheck.Unknown, "", now, now+9))
		now += 10
	}
	want(t, false, lockcheck.ServerView(h, lockcheck.Rules{}))
	h.Holds[2000] = expired("late", 2001, h.Holds[2000].Invoked, now)
	want(t, true, lockcheck.ServerView(h, lockcheck.Rules{}))
}

// What one process reported, another replays; a line cut off by a kill is no error.
func TestReplay(t *testing.T) {
	t.Parallel()
	var pipe strings.Builder
	child := lockcheck.NewRecorder(&pipe)
	child.Hold(expired("a", 3, 0, 9))
	child.Hold(held("a", 3, 0, 5))
	child.Attempt(failed(lockcheck.Held, "a", 1, 2))
	child.Wrote(wrote("a", 3, 1, 2, 3), wrote("a", 3, 2, 2, 3))
	if err := child.Err(); err != nil {
		t.Fatal(err)
	}
	var said []string
	parent := lockcheck.NewRecorder(nil)
	in := "ready\n" + pipe.String() + `{"hold":{"lock":"k","id":"cut`
	if err := parent.Replay(strings.NewReader(in), func(s string) { said = append(said, s) }); err != nil {
		t.Fatal(err)
	}
	got := parent.History()
	if len(got.Holds) != 1 || got.Holds[0] != held("a", 3, 0, 5) || len(got.Attempts) != 1 || len(got.Fenced) != 1 ||
		got.Unfenced[0].Seq != 2 || fmt.Sprint(said) != "[ready]" {
		t.Errorf("replayed %+v, said %q", got, said)
	}
	if err := parent.Replay(strings.NewReader("{nonsense}\n"), nil); err == nil {
		t.Error("nonsense is accepted")
	}
}

func TestNowGrows(t *testing.T) {
	t.Parallel()
	last := lockcheck.Now()
	for range 1000 {
		now := lockcheck.Now()
		if now < last {
			t.Fatalf("clock went from %d to %d", last, now)
		}
		last = now
	}
}
