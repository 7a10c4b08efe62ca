package histories_test

import (
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"time"

	"pgregory.net/rapid"

	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// recheckSlack is what the agent adds to the wait before it reads again.
const recheckSlack = 50 * time.Millisecond

// pick draws an index below n, each about as often: rapid itself likes small
// numbers, and the last families would hardly come.
func pick(rt *rapid.T, n int, label string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(strconv.Itoa(int(rapid.Uint16().Draw(rt, label)))))
	return int(h.Sum32() % uint32(n))
}

func oneOf[T any](rt *rapid.T, label string, list ...T) T { return list[pick(rt, len(list), label)] }

// step is one thing that happens; a step that cannot happen does nothing.
type step func(w *world, rt *rapid.T, lib *library)

// steps are all that can happen, with how often of a hundred or so.
var steps = map[string]struct {
	weight int
	step   step
}{
	"take":             {20, func(w *world, rt *rapid.T, lib *library) { w.take(rt, lib) }},
	"release":          {6, (*world).releaseOne},
	"crash":            {4, (*world).crash},
	"delete":           {4, (*world).deleteOne},
	"take over":        {3, (*world).takeOver},
	"persist":          {3, (*world).persist},
	"expire":           {3, (*world).expire},
	"acquire":          {10, (*world).acquireOne},
	"knot":             {4, (*world).knot},
	"wait":             {4, (*world).waitOne},
	"give up":          {3, (*world).giveUpOne},
	"kill":             {4, (*world).killOne},
	"finish":           {2, (*world).finish},
	"pause":            {3, (*world).pause},
	"delete heartbeat": {1, (*world).deleteHeartbeat},
	"rollout":          {3, (*world).rollout},
	"overlap":          {1, (*world).overlap},
	"bereave":          {2, (*world).bereave},
	"jilt":             {2, (*world).jilt},
	"turn over":        {3, (*world).turnOver},
	"unseen":           {4, (*world).unseen},
	"flush":            {1, (*world).flush},
	"noise":            {2, (*world).makeNoise},
	"moment": {6, func(w *world, rt *rapid.T, _ *library) {
		w.wait(rt, time.Millisecond, 40*time.Millisecond, time.Second)
	}},
	"seconds": {12, func(w *world, rt *rapid.T, _ *library) {
		w.wait(rt, 2*time.Second, 5*time.Second, 16*time.Second, 31*time.Second)
	}},
	"minutes": {8, func(w *world, rt *rapid.T, _ *library) { w.wait(rt, time.Minute, 4*time.Minute, 11*time.Minute) }},
	"hour":    {2, func(w *world, rt *rapid.T, _ *library) { w.wait(rt, time.Hour) }},
	"look":    {26, func(w *world, _ *rapid.T, _ *library) { w.sweep() }},
	"patrol":  {7, (*world).patrol},
	"brink":   {7, (*world).brink},
	"restart": {4, (*world).restart},
}

// actions are the steps as rapid repeats them.
func (w *world) actions(lib *library) map[string]func(*rapid.T) {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(steps)) {
		names = append(names, slices.Repeat([]string{name}, steps[name].weight)...)
	}
	return map[string]func(*rapid.T){"step": func(rt *rapid.T) {
		w.advance(time.Millisecond) // no two things happen at once
		steps[oneOf(rt, "step", names...)].step(w, rt, lib)
	}}
}

func (w *world) wait(rt *rapid.T, some ...time.Duration) {
	d := oneOf(rt, "time", some...) + time.Duration(rapid.IntRange(0, 999).Draw(rt, "ms"))*time.Millisecond
	w.advance(d)
	w.tell("%s later", d)
}

// sweep is a look at everything.
func (w *world) sweep() {
	w.settle()
	w.tell("SWEEP")
	sweep, dead, err := w.agent.sweep(w.ctx)
	w.must(err)
	if !sweep.Complete() {
		w.fail("the test itself failed: the sweep is not complete: %+v", sweep.Masters)
	}
	w.judge(true, func(string) bool { return true }, dead)
	if w.recheck.IsZero() && len(w.agent.due()) > 0 {
		w.recheck = w.now.Add(rules.RecheckAfter + recheckSlack)
	}
}

// patrol is an agent that looks on schedule for a while.
func (w *world) patrol(rt *rapid.T, _ *library) {
	every := oneOf(rt, "every", 14*time.Second, 30*time.Second)
	for range rapid.IntRange(2, 6).Draw(rt, "sweeps") {
		w.advance(every)
		w.sweep()
	}
}

// brink is a look at the moment at which something is about to become true, or just
// has: that a hold lasts too long, that its lease or its metadata ends.
func (w *world) brink(rt *rapid.T, _ *library) {
	h := w.some(rt, func(*hold) bool { return true })
	which := oneOf(rt, "of", "expect", "expect", "lease", "metadata")
	by := oneOf(rt, "by", -time.Millisecond, -400*time.Millisecond, -950*time.Millisecond, time.Millisecond)
	if h == nil {
		return
	}
	at := h.expires
	switch {
	case which == "expect" && h.own != nil && h.own.expect > 0:
		at = h.taken.Add(h.own.expect)
	case which == "expect":
		at = h.taken.Add(w.plan.classOf(h.key).Expect)
	case which == "metadata" && h.own != nil:
		at = h.own.metaEnd
	}
	if at = at.Add(by); !at.After(w.now) {
		return
	}
	w.advance(at.Sub(w.now))
	w.tell("%s by the %s of %s", by, which, h)
	w.sweep()
}

// lookAgain is the agent's second look at what a first one left open.
func (w *world) lookAgain() {
	locks := w.agent.due()
	again := map[string]bool{}
	for _, l := range locks {
		again[l.Key] = true
	}
	w.tell("LOOK AGAIN at %q", slices.Sorted(maps.Keys(again)))
	for key, s := range w.truth.sights {
		wait := noTTLFor
		if s.leased || s.wasLeased {
			wait = lostTTLFor
		}
		open := !s.bare.IsZero() && s.last.Sub(s.bare) < wait && !w.truth.bare[key] &&
			w.plan.classOf(key).TTL != "allowed-none"
		if open && !again[key] {
			w.fail("%s: %q had no TTL when it was seen first, and is not due to be read again", w.now.Sub(w.began), key)
		}
	}
	if len(locks) == 0 {
		return
	}
	w.settle()
	w.must(w.agent.recheck(w.ctx, locks))
	w.judge(false, func(key string) bool { return again[key] }, nil)
}

// restart ends the agent and begins another with its store.
func (w *world) restart(rt *rapid.T, _ *library) {
	crash := rapid.Bool().Draw(rt, "crash")
	if crash {
		w.agent.store.crash(rapid.IntRange(1, 2).Draw(rt, "unsaved"))
	}
	w.tell("the agent is restarted (crash: %v)", crash)
	w.recheck = time.Time{}
	w.must(w.agent.start())
	w.restarted()
}

// standing are the holds for which a condition is true, in the order of their keys.
func (w *world) standing(ok func(h *hold) bool) []*hold {
	var out []*hold
	for _, key := range slices.Sorted(maps.Keys(w.holds)) {
		if ok(w.holds[key]) {
			out = append(out, w.holds[key])
		}
	}
	return out
}

// some draws one of the holds, nil if there is none.
func (w *world) some(rt *rapid.T, ok func(h *hold) bool) *hold {
	list := w.standing(ok)
	if len(list) == 0 {
		return nil
	}
	return list[pick(rt, len(list), "hold")]
}

// take is a user of another library taking a lock, often one that was taken before.
func (w *world) take(rt *rapid.T, lib *library) *hold {
	// By the seed too: what rapid draws is never even, and no family may be missed.
	family := lib.families[(pick(rt, len(lib.families), "family")+w.rng.IntN(len(lib.families)))%len(lib.families)]
	s := oneOf(rt, "shape", lib.shapes[family]...)
	again := pick(rt, 3, "again") == 0 && len(w.tokens) > 0
	if again {
		s = w.tokens[oneOf(rt, "key", slices.Sorted(maps.Keys(w.tokens))...)].fixture
		family = s.family
	}
	mode := oneOf(rt, "mode", "whole", "whole", "whole", "whole", "crash before EXPIRE", "slow EXPIRE")
	lease := oneOf(rt, "lease", s.ttl, s.ttl, 10*time.Second, time.Minute, 20*time.Minute)
	delay := oneOf(rt, "delay", time.Millisecond, 900*time.Millisecond, 1900*time.Millisecond, 2200*time.Millisecond, 6*time.Second)
	if w.holds[s.key] != nil || w.noise[s.key] {
		return nil
	}
	h := &hold{taken: w.now, tells: s.telling(), renewed: w.now, touched: w.now, lease: lease}
	// A thread or process takes the lock with the token that it had before, where the
	// library does not draw one for each hold.
	again = again && !s.fresh()
	if h.shape = s.taken(w.now, w.rng, !again); again {
		h.shape = s.retaken(w.tokens[s.key].written, w.now)
	}
	w.tokens[s.key] = token{s, h.shape}
	if s.every > 0 {
		h.lease = s.ttl
	}
	switch {
	case s.ttl == 0:
		h.lease, mode = 0, "no TTL at all"
	case mode == "crash before EXPIRE":
		h.stuck = true
	case mode == "slow EXPIRE" && s.every == 0:
		h.begins = w.now.Add(delay)
		mode += " in " + delay.String()
	default:
		h.expires, h.every = w.now.Add(h.lease), s.every
		mode = "whole"
	}
	w.write(h)
	w.truth.seen.families[family] = true
	w.tell("take %s: %s, the token it had: %v", h, mode, again)
	return h
}

// releaseOne is the end of a hold as its holder wants it.
func (w *world) releaseOne(rt *rapid.T, _ *library) {
	if h := w.some(rt, func(h *hold) bool { return !h.stuck && (h.own == nil || !h.own.process.pausedUntil.After(w.now)) }); h != nil {
		w.release(h)
	}
}

func (w *world) release(h *hold) {
	w.tell("release %s", h)
	w.must(w.db.Del(w.ctx, h.key).Err())
	if h.own != nil {
		w.must(w.db.Del(w.ctx, meta(h.key)).Err())
	}
	w.over(h)
}

// crash is the end of a holder of another library.
func (w *world) crash(rt *rapid.T, _ *library) {
	if h := w.some(rt, func(h *hold) bool { return h.own == nil && !h.stuck }); h != nil {
		h.stuck, h.begins = true, time.Time{}
		w.tell("the holder dies: %s", h)
	}
}

// deleteOne is somebody else who deletes a lock.
func (w *world) deleteOne(rt *rapid.T, _ *library) {
	h := w.some(rt, func(*hold) bool { return true })
	if h == nil {
		return
	}
	w.tell("somebody deletes %s", h)
	w.must(w.db.Del(w.ctx, h.key).Err())
	w.lose(h)
	w.over(h)
}

// takeOver is somebody who takes no notice of the holder: SET without NX.
func (w *world) takeOver(rt *rapid.T, lib *library) {
	h := w.some(rt, func(h *hold) bool { return h.typ == "string" })
	s := oneOf(rt, "shape", lib.shapes[formats.Token]...)
	lease := oneOf(rt, "lease", 0, 30*time.Second, 20*time.Minute)
	if h == nil {
		return
	}
	w.tell("somebody takes over %s", h)
	w.lose(h)
	w.over(h)
	s.key, s.family, s.beside = h.key, formats.Token, nil
	now := &hold{shape: s.taken(w.now, w.rng, true), taken: w.now, renewed: w.now, touched: w.now, lease: lease, stuck: true}
	if lease > 0 {
		now.expires = w.now.Add(lease)
	}
	w.write(now)
	w.tell("which is now %s", now)
}

// persist takes the TTL away.
func (w *world) persist(rt *rapid.T, _ *library) {
	if h := w.some(rt, func(h *hold) bool { return !h.expires.IsZero() }); h != nil {
		w.tell("somebody takes away the TTL of %s", h)
		w.must(w.db.Persist(w.ctx, h.key).Err())
		h.expires, h.touched = time.Time{}, w.now
	}
}

// expire sets another TTL, longer or shorter.
func (w *world) expire(rt *rapid.T, _ *library) {
	h := w.some(rt, func(h *hold) bool { return h.begins.IsZero() })
	d := oneOf(rt, "ttl", time.Second, 20*time.Second, 10*time.Minute)
	if h != nil {
		h.expires, h.touched = w.now.Add(d), w.now
		w.must(w.db.PExpireAt(w.ctx, h.key, h.expires).Err())
		w.tell("somebody sets a TTL of %s: %s", d, h)
	}
}

// living are the processes that live and are not frozen.
func (w *world) living() []*process {
	return slices.DeleteFunc(slices.Clone(w.processes), func(p *process) bool { return !p.alive || p.pausedUntil.After(w.now) })
}

// someProcess draws one that lives, or begins one.
func (w *world) someProcess(rt *rapid.T) *process {
	list := w.living()
	i := pick(rt, 5, "process")
	if i < len(list) {
		return list[i]
	}
	// A slot is a name that one live process has at a time.
	slot := oneOf(rt, "slot", "", "pod-0", "pod-1")
	if slices.ContainsFunc(w.processes, func(p *process) bool { return p.alive && p.slot == slot }) {
		slot = ""
	}
	return w.begin(slot, oneOf(rt, "host", "web-1", "web-2"))
}

// freeKeys are our own locks that nobody has.
func (w *world) freeKeys() []string {
	return slices.DeleteFunc(slices.Clone(ownKeys), func(key string) bool { return w.holds[key] != nil })
}

func (w *world) acquireOne(rt *rapid.T, _ *library) {
	free := w.freeKeys()
	if len(free) == 0 {
		return
	}
	p, key := w.someProcess(rt), oneOf(rt, "key", free...)
	session := ""
	if rapid.Bool().Draw(rt, "session") {
		session = p.session(oneOf(rt, "which", 0, 1))
	}
	lease := oneOf(rt, "lease", 10*time.Second, 30*time.Second, 10*time.Minute, time.Hour)
	third := (lease / 3).Truncate(time.Millisecond)
	every := oneOf(rt, "every", 0, third, third)
	expect := oneOf(rt, "expect", 0, 0, 20*time.Second, 5*time.Minute)
	w.acquire(p, session, key, lease, every, expect)
}

func (p *process) session(n int) string { return p.id + "/" + strconv.Itoa(n) }

// knot is a deadlock of two to five sessions.
func (w *world) knot(rt *rapid.T, _ *library) {
	n := rapid.IntRange(2, 5).Draw(rt, "sessions")
	free := w.freeKeys()
	if len(free) < n {
		return
	}
	ps := make([]*process, n)
	for i := range n {
		ps[i] = w.someProcess(rt)
		ps[i].sessions++
	}
	names := make([]string, n)
	for i, p := range ps {
		names[i] = p.session(10*p.sessions + i)
		w.acquire(p, names[i], free[i], 30*time.Second, 10*time.Second, 0)
	}
	for i, p := range ps {
		w.await(p, names[i], free[(i+1)%n])
	}
}

// waitOne is a session that waits for a lock of another.
func (w *world) waitOne(rt *rapid.T, _ *library) {
	h := w.some(rt, func(h *hold) bool { return h.own != nil })
	if h == nil {
		return
	}
	p := w.someProcess(rt)
	session := oneOf(rt, "session", "", p.session(0), p.session(1))
	if session != "" && session == h.own.session {
		return // lock/ re-enters
	}
	w.await(p, session, h.key)
}

func (w *world) giveUpOne(rt *rapid.T, _ *library) {
	on := slices.DeleteFunc(slices.Clone(w.waits), func(c *wait) bool { return !c.on || c.process.pausedUntil.After(w.now) })
	if len(on) > 0 {
		w.giveUp(on[pick(rt, len(on), "waiter")])
	}
}

func (w *world) killOne(rt *rapid.T, _ *library) {
	list := slices.DeleteFunc(slices.Clone(w.processes), func(p *process) bool { return !p.alive })
	if len(list) > 0 {
		w.kill(list[pick(rt, len(list), "process")])
	}
}

// finish is the orderly end of a process, one of whose releases may have been
// lost on the way.
func (w *world) finish(rt *rapid.T, _ *library) {
	list := w.living()
	if len(list) == 0 {
		return
	}
	p := list[pick(rt, len(list), "process")]
	keep := rapid.Bool().Draw(rt, "a release is lost")
	for _, h := range w.standing(func(h *hold) bool { return h.own != nil && h.own.process == p }) {
		if keep {
			keep = false
			continue
		}
		w.release(h)
	}
	for _, c := range slices.Clone(w.waits) {
		if c.process == p && c.on {
			w.giveUp(c)
		}
	}
	w.leave(p)
}

// leave is the orderly end of a process.
func (w *world) leave(p *process) {
	w.must(w.db.Del(w.ctx, channel(p)).Err())
	p.written = false
	w.tell("process %s ends in order", p.id)
	w.stop(p)
}

// pause freezes a process, for less time than death is presumed from (three TTLs
// of its heartbeat without one) unless its connection stays.
func (w *world) pause(rt *rapid.T, _ *library) {
	list := slices.DeleteFunc(w.living(), func(p *process) bool { return !p.written })
	d := oneOf(rt, "for", 8*time.Second, 20*time.Second, 40*time.Second, 58*time.Second)
	deaf := rapid.Bool().Draw(rt, "its connection breaks")
	if len(list) == 0 {
		return
	}
	if !deaf && d > time.Minute/2 {
		d += 2 * time.Minute
	}
	w.freeze(list[pick(rt, len(list), "process")], d, deaf)
}

func (w *world) freeze(p *process, d time.Duration, deaf bool) {
	p.pausedUntil = w.now.Add(d)
	if deaf {
		w.unlisten(p)
	}
	w.tell("process %s is frozen for %s (connection lost: %v)", p.id, d, deaf)
}

// deleteHeartbeat is somebody who deletes the heartbeat of a live process.
func (w *world) deleteHeartbeat(rt *rapid.T, _ *library) {
	list := slices.DeleteFunc(w.living(), func(p *process) bool { return !p.listens || !p.written })
	if len(list) == 0 {
		return
	}
	p := list[pick(rt, len(list), "process")]
	w.must(w.db.Del(w.ctx, channel(p)).Err())
	p.written = false
	w.tell("somebody deletes the heartbeat of %s", p.id)
}

// flush is somebody who empties the server.
func (w *world) flush(*rapid.T, *library) {
	w.tell("FLUSHALL")
	w.must(w.db.FlushAll(w.ctx).Err())
	clear(w.holds)
	clear(w.noise)
	w.losses = nil
	w.waits = slices.DeleteFunc(w.waits, func(c *wait) bool { return !c.on })
	for _, p := range w.processes {
		p.written = false
	}
	for _, c := range w.waits {
		c.until = time.Time{}
	}
}

// makeNoise writes a key that is no lock, though it may look like one.
func (w *world) makeNoise(rt *rapid.T, lib *library) {
	s := oneOf(rt, "noise", lib.noise...)
	if w.holds[s.key] != nil || w.plan.set.Classify(s.key).Configured || s.isLock(w.plan.set.Classify(s.key), 0) {
		return
	}
	if h := (&hold{shape: s, lease: s.ttl}); s.typ != "none" {
		w.write(h)
		delete(w.holds, s.key)
		w.noise[s.key] = true
		w.tell("%q is written, which is no lock", s.key)
	}
}

// resume gives processes their connections back that were frozen.
func (w *world) resume(to time.Time) {
	for _, p := range w.processes {
		if p.alive && !p.listens && !p.pausedUntil.After(to) {
			w.listen(p)
		}
	}
}
