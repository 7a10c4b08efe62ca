package targets

import (
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// proposals are the questions whether locks that their class calls dead should be
// released. They are asked beside the watch, one after the other: each reads the lock
// again and writes to the store, and a dead host may leave a thousand of them.
type proposals struct {
	mu    sync.Mutex
	queue []question
	// answered has the questions that hold now, by kind and id: false while the answer is
	// missing. One that failed is not in it, and so is asked again by the next sweep.
	answered [2]map[string]bool
	fresh    chan struct{} // of size 1
}

// The kinds of questions: by findings of rules and by expressions of dead_when. Each
// sweep says all of a kind.
const (
	byRule = iota
	byExpression
)

// question is whether one hold should be released: another hold under the same key is
// another question.
type question struct {
	kind    int
	id, key string
}

// replace takes all questions of a kind that hold now: what is new is asked, and what
// holds no longer is not.
func (p *proposals) replace(kind int, now []question) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.answered[kind]
	p.answered[kind] = make(map[string]bool, len(now))
	for _, q := range now {
		p.addLocked(q, before)
	}
	p.queue = slices.DeleteFunc(p.queue, func(q question) bool { return !p.holdsLocked(q) })
}

// add takes one question more.
func (p *proposals) add(q question) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answered[q.kind] == nil {
		p.answered[q.kind] = map[string]bool{}
	}
	if !p.holdsLocked(q) {
		p.addLocked(q, nil)
	}
}

func (p *proposals) addLocked(q question, before map[string]bool) {
	answered, known := before[q.id]
	p.answered[q.kind][q.id] = answered
	if !known {
		p.queue = append(p.queue, q)
		select {
		case p.fresh <- struct{}{}:
		default:
		}
	}
}

func (p *proposals) holdsLocked(q question) bool {
	_, ok := p.answered[q.kind][q.id]
	return ok
}

// next is the question to be asked now.
func (p *proposals) next() (question, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		p.queue = nil // what it grew to is given back
		return question{}, false
	}
	q := p.queue[0]
	p.queue = p.queue[1:]
	return q, true
}

// done notes what became of a question; one that failed is worth another try.
func (p *proposals) done(q question, failed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !p.holdsLocked(q):
	case failed:
		delete(p.answered[q.kind], q.id)
	default:
		p.answered[q.kind][q.id] = true
	}
}

// proposing asks until ctx ends. What is not asked then is asked after the next start.
func (w *Watched) proposing(ctx context.Context) {
	for ctx.Err() == nil {
		q, ok := w.proposals.next()
		if !ok {
			select {
			case <-ctx.Done():
			case <-w.proposals.fresh:
			}
			continue
		}
		w.proposals.done(q, !w.proposeRelease(ctx, q.key))
	}
}

// proposeAll has the release asked for of each lock that a rule of its class calls dead.
// The caller has the turn.
func (w *Watched) proposeAll(findings iter.Seq[locksteward.Finding]) {
	if w.backlog.size() > 0 {
		return
	}
	var all []question
	for f := range findings {
		if q, ok := w.question(f); ok {
			all = append(all, q)
		}
	}
	w.proposals.replace(byRule, all)
}

// question is what is asked about a finding that fires on a known lock, if its class
// calls that dead; a reload may change the class. After a restart or failover nobody is
// called dead for one longest lease.
func (w *Watched) question(f locksteward.Finding) (q question, ok bool) {
	if f.Status != locksteward.StatusFiring || f.Key == "" || !slices.Contains(w.classNamed(f.Class).DeadWhen, f.Rule) {
		return question{}, false
	}
	l, ok := w.scanner.Table().Get(f.DB, f.Key)
	if !ok {
		return question{}, false
	}
	_, _, paused := w.deps.Engine.Paused(w.target.Name, l.At)
	return question{byRule, f.Fingerprint() + l.TokenDigest + l.History.FirstSeen.String(), f.Key}, !paused
}

// classNamed is a class of the configuration; the zero class without one.
func (w *Watched) classNamed(name string) class.Class {
	c, _ := w.deps.Classes().Get(name)
	return c
}
