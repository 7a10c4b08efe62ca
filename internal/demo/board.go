package demo

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

// board is what is known so far. Everybody writes to it, the screen and the
// report read it, and those that wait for something wait here.
type board struct {
	mu      sync.Mutex
	changed chan struct{} // closed at each change
	state   state

	// onLine is called with each alert and each step of the story, one at a time,
	// when it comes; nil is nobody.
	onLine func(line)
	tells  sync.Mutex
}

// state is the content of a board; only await and look hand it out, and only for
// the time of a call.
type state struct {
	began    time.Time
	scene    scene
	locks    []api.Lock
	findings []sighting
	others   int // locks on the server that are not the demo's
	alerts   []alertSeen
	events   []line // alerts and what the demo did, as they came
	story    []line
	steps    []line // the story without its details
	woken    *woken
	queue    int  // workers that wait
	turns    int  // of the workers
	ended    bool // the story
	trouble  error
}

// sighting is a finding and when it was first seen firing, since the start of
// the lock users. It stays when the finding has gone.
type sighting struct {
	api.Finding
	after time.Duration
	last  time.Time // when it was last seen
	gone  bool
}

// alertSeen is one finding in a message that the webhook received.
type alertSeen struct {
	after    time.Duration
	status   string
	severity string
	rule     string
	key      string
}

// woken is a waiter that was woken and has its lock.
type woken struct {
	at      time.Time
	channel string
	id      string
}

func newBoard(s scene, onLine func(line)) *board {
	return &board{changed: make(chan struct{}), state: state{began: time.Now(), scene: s}, onLine: onLine}
}

// update changes the state and wakes who waits.
func (b *board) update(change func(s *state)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.state)
	close(b.changed)
	b.changed = make(chan struct{})
}

// look calls f with the state.
func (b *board) look(f func(s *state)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(&b.state)
}

// await returns when cond holds, or ctx's cause when that ends first.
func (b *board) await(ctx context.Context, cond func(s *state) bool) error {
	for {
		b.mu.Lock()
		met, changed := cond(&b.state), b.changed
		b.mu.Unlock()
		if met {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

func (b *board) say(l line) {
	if b.onLine == nil {
		return
	}
	b.tells.Lock()
	defer b.tells.Unlock()
	b.onLine(l)
}

// tell adds a step and its details to the story.
func (b *board) tell(step line, details ...line) {
	lines := append([]line{step}, details...)
	b.update(func(s *state) {
		s.steps = append(s.steps, step)
		s.story = append(s.story, lines...)
	})
	for _, l := range lines {
		b.say(l)
	}
}

// received takes in one finding of a message to the webhook. Those about other
// people's locks are nobody's business here.
func (b *board) received(f api.Finding) {
	b.event(func(s *state) line {
		if !s.concerns(f) {
			return nil
		}
		a := alertSeen{
			after: time.Since(s.began), status: f.Status, severity: f.Severity, rule: f.Rule, key: f.Key.Key,
		}
		s.alerts = append(s.alerts, a)
		return a.line()
	})
}

// saw takes in what the agent says now.
func (b *board) saw(locks []api.Lock, findings []api.Finding) {
	b.update(func(s *state) {
		s.trouble = nil
		all := len(locks)
		s.locks = slices.DeleteFunc(locks, func(l api.Lock) bool { return !s.scene.owns(l.Key.Key) })
		s.others = all - len(s.locks)
		s.take(findings)
	})
}

func (b *board) failed(err error) { b.update(func(s *state) { s.trouble = err }) }

func (b *board) queued(n int) { b.update(func(s *state) { s.queue += n }) }
func (b *board) worked()      { b.update(func(s *state) { s.turns++ }) }

// killed tells that a process was ended with the lock in its hands.
func (b *board) killed(pid int) {
	b.event(func(s *state) line {
		return line{
			{text: "  " + pad(duration(time.Since(s.began)), -6), style: dim},
			{text: fmt.Sprintf("  SIGKILL to process %d, which holds %s", pid, s.scene.importing()), style: dim},
		}
	})
}

// maxEvents is more than a screen shows of them.
const maxEvents = 100

// event adds a line that tells what happened; nil adds nothing.
func (b *board) event(tell func(s *state) line) {
	var l line
	b.update(func(s *state) {
		if l = tell(s); l != nil {
			s.events = append(last(s.events, maxEvents-1), l)
		}
	})
	if l != nil {
		b.say(l)
	}
}

func (b *board) wokeUp(w woken) { b.update(func(s *state) { s.woken = &w }) }

// take merges the findings of now into those seen before.
func (s *state) take(findings []api.Finding) {
	for i := range s.findings {
		s.findings[i].gone = true
	}
	for _, f := range findings {
		if !s.concerns(f) || f.Status != string(locksteward.StatusFiring) {
			continue
		}
		at := slices.IndexFunc(s.findings, func(known sighting) bool { return known.Fingerprint == f.Fingerprint })
		if at < 0 {
			s.findings = append(s.findings, sighting{Finding: f, after: time.Since(s.began), last: time.Now()})
			continue
		}
		s.findings[at].Finding, s.findings[at].last, s.findings[at].gone = f, time.Now(), false
	}
}

// concerns says whether a finding is about the demo.
func (s *state) concerns(f api.Finding) bool {
	if f.Key.Key != "" {
		return s.scene.owns(f.Key.Key)
	}
	return slices.ContainsFunc(s.scene.expected(), func(e expectation) bool { return e.class == f.Class })
}

// seen returns the finding that fulfils an expectation, nil if there was none.
func (s *state) seen(e expectation) *sighting {
	for i := range s.findings {
		f := &s.findings[i]
		if f.Rule == e.rule && (e.key != "" && f.Key.Key == e.key || e.key == "" && f.Key.Key == "" && f.Class == e.class) {
			return f
		}
	}
	return nil
}

// ofClass lists the rules that fire on a whole class.
func (s *state) ofClass(class string) []string {
	var out []string
	for _, f := range s.findings {
		if f.Key.Key == "" && f.Class == class && !f.gone {
			out = append(out, f.Rule)
		}
	}
	return out
}

// missing lists what was promised and not seen yet.
func (s *state) missing() []string {
	var out []string
	for _, e := range s.scene.expected() {
		if s.seen(e) == nil {
			out = append(out, e.String())
		}
	}
	return out
}

// holds says whether the agent knows the lock as held.
func (s *state) holds(key string) bool {
	return slices.ContainsFunc(s.locks, func(l api.Lock) bool { return l.Key.Key == key })
}

// alert says whether the webhook was notified of a finding with this status.
func (s *state) alert(status locksteward.Status, rule, key string) bool {
	return slices.ContainsFunc(s.alerts, func(a alertSeen) bool {
		return a.status == string(status) && a.rule == rule && a.key == key
	})
}

// line shows an alert: when, what, where.
func (a alertSeen) line() line {
	return line{
		{text: "  "},
		{text: pad(duration(a.after), -6), style: dim},
		{text: "  "},
		{text: pad(a.status, 8), style: statusStyle(a.status)},
		{text: "  "},
		{text: pad(a.severity, 8), style: severityStyle(a.severity)},
		{text: "  " + pad(a.rule, 15) + "  " + a.key},
	}
}

func statusStyle(status string) style {
	if status == string(locksteward.StatusResolved) {
		return green
	}
	return bold
}
