package histories_test

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/locksteward/locksteward/source/redis/formats"
)

// rollout is a process in a declared slot that ends with a lock, killed or in order but
// with its release lost, and the next one in its slot.
func (w *world) rollout(rt *rapid.T, lib *library) {
	polite := rapid.Bool().Draw(rt, "orderly end")
	p, slot := w.inSlot(rt)
	if p == nil {
		return
	}
	w.sweep()
	w.advance(time.Second)
	if polite {
		w.leave(p)
	} else {
		w.kill(p)
		w.advance(time.Second)
		w.begin(slot, "web-2")
	}
	w.patrol(rt, lib)
}

// inSlot begins a process in a slot that nobody is in, with a lock that it does not
// renew; nil if that cannot be.
func (w *world) inSlot(rt *rapid.T) (p *process, slot string) {
	free := w.freeKeys()
	slot = oneOf(rt, "slot", "pod-0", "pod-1")
	if len(free) == 0 || slices.ContainsFunc(w.processes, func(p *process) bool { return p.alive && p.slot == slot }) {
		return nil, slot
	}
	p = w.begin(slot, "web-1")
	w.acquire(p, "", free[0], time.Hour, 0, 0)
	return p, slot
}

// overlap is a process that is begun in a slot whose last one still lives: "one
// that was started while this one still beat proves nothing". The old one is then
// cut off for a while.
func (w *world) overlap(rt *rapid.T, lib *library) {
	p, slot := w.inSlot(rt)
	if p == nil {
		return
	}
	next := w.begin(slot, "web-2")
	w.advance(6 * time.Second)
	w.sweep()
	w.freeze(p, 58*time.Second, true)
	w.patrol(rt, lib)
	w.leave(next)
}

// bereave is somebody who deletes the heartbeat of a process, of which the agent looks
// at that moment; the process writes another, and is cut off and frozen at some later
// looks.
func (w *world) bereave(rt *rapid.T, lib *library) {
	free := w.freeKeys()
	if len(free) == 0 {
		return
	}
	p := w.begin("", "web-1")
	w.acquire(p, "", free[0], time.Hour, 0, 0)
	w.sweep()
	w.advance(time.Second)
	w.must(w.db.Del(w.ctx, channel(p)).Err())
	p.written = false
	w.tell("somebody deletes the heartbeat of %s", p.id)
	for range rapid.IntRange(1, 3).Draw(rt, "sweeps") {
		w.advance(time.Millisecond)
		w.sweep()
	}
	w.advance(oneOf(rt, "later", 7*time.Second, time.Minute, 4*time.Minute))
	w.freeze(p, oneOf(rt, "for", 20*time.Second, 58*time.Second), true)
	w.patrol(rt, lib)
}

// jilt is a deadlock that ends when one of the two is killed: its record is there
// for as long as somebody else waits for the same lock, and is believed no more.
func (w *world) jilt(rt *rapid.T, _ *library) {
	free := w.freeKeys()
	if len(free) < 2 {
		return
	}
	var ps []*process
	for range 3 {
		ps = append(ps, w.begin("", "web-1"))
	}
	for i := range 2 {
		w.acquire(ps[i], ps[i].session(0), free[i], 30*time.Second, 10*time.Second, 0)
	}
	for i := range 2 {
		w.await(ps[i], ps[i].session(0), free[1-i])
		w.await(ps[2], ps[2].session(i), free[i])
	}
	w.kill(ps[0])
	w.wait(rt, 0, time.Second, 3*time.Second)
	w.sweep()
	w.advance(2100 * time.Millisecond)
	w.sweep()
}

// turnOver is a constant token that hides that the lock changed hands, with an
// expiry that is earlier, or was not there before.
func (w *world) turnOver(rt *rapid.T, lib *library) {
	shared := slices.DeleteFunc(slices.Clone(lib.shapes[formats.Token]), func(s shape) bool {
		return !formats.Recognise(s.sample(time.Minute)).SharedToken || w.holds[s.key] != nil || w.noise[s.key]
	})
	first := oneOf(rt, "first", 0, 20*time.Minute)
	second := oneOf(rt, "second", 0, time.Minute)
	if len(shared) == 0 {
		return
	}
	s := oneOf(rt, "shape", shared...)
	expect := w.plan.classOf(s.key).Expect
	for i, lease := range []time.Duration{first, second} {
		h := &hold{shape: s.taken(w.now, w.rng, false), taken: w.now, renewed: w.now, touched: w.now, lease: lease}
		if lease > 0 {
			h.expires = w.now.Add(lease)
		}
		w.write(h)
		w.tell("take %s, with a token that never changes", h)
		w.sweep()
		w.advance(8 * time.Second)
		w.sweep()
		if i == 0 {
			w.advance(max(time.Second, expect-10*time.Second))
			if w.holds[s.key] != h {
				return
			}
			w.release(h)
		}
	}
}

// unseen is a lock that is seen first when it is about to be held for too long.
func (w *world) unseen(rt *rapid.T, lib *library) {
	w.wait(rt, 0)
	h := w.take(rt, lib)
	by := oneOf(rt, "before", time.Millisecond, 300*time.Millisecond, 600*time.Millisecond, 950*time.Millisecond)
	if h == nil {
		return
	}
	if expect := w.plan.classOf(h.key).Expect; expect > 0 {
		w.advance(expect - by)
		w.sweep()
	}
}
