package histories_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/catalogue"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// noTTLByDesign are the libraries whose locks have no TTL by design, as their
// pages under docs/libraries say.
var noTTLByDesign = []string{
	"asynq-lease", "bullmq-dedup", "celery-singleton", "huey-lock", "redis-mutex", "redisson-latch", "redisson-permit-semaphore",
	"redisson-semaphore", "ruby-redis-semaphore", "sidekiq-unique-v8", "sidekiq-unique-v9",
}

// notMoved is by how much an expiry may differ and still count as the same: where
// a server does not tell it, it is computed.
const notMoved = 50 * time.Millisecond

// noTTLFor is for how long a lock must be seen without TTL, and lostTTLFor for how long
// one that was seen with a TTL before, if its token is not a constant.
const (
	noTTLFor   = 2 * time.Second
	lostTTLFor = 500 * time.Millisecond
)

// kept is the age from which the history of a hold outlives the agent.
const kept = 5 * time.Second

// truth is what looks have had to see so far.
type truth struct {
	sights map[string]*sight
	// stored are the sights that a new agent goes on with.
	stored map[string]sight
	// bare are the locks on which ttl/none fired when the agent was restarted, and
	// young says that the new one has made no sweep yet.
	bare  map[string]bool
	young bool
	// edges counts in how many looks in a row each wait was there.
	edges    map[edge]int
	reported map[*loss]telling

	seen tally
}

// sight is one hold as looks from outside can know it: the same bytes under the
// same key.
type sight struct {
	bytes, claim string
	first, last  time.Time
	mine         time.Time // the first look of the agent that runs now
	// real is since when the bytes are really there.
	real time.Time
	// moved is the last look that saw another expiry than the one before.
	moved   time.Time
	expires time.Time
	bare    time.Time // the first of the looks in a row that saw no TTL
	// leased says that the agent that runs now saw it with a TTL and a token that is no
	// constant, wasLeased that one before it did, of which the store may know.
	leased, wasLeased bool
}

// telling is how and when a loss was reported first.
type telling struct {
	how locksteward.EndedHow
	at  time.Time
}

// tally counts what the histories have shown, so that none of it goes missing
// unnoticed.
type tally struct {
	families map[string]bool
	events   map[string]int
}

func (t *tally) count(what string) { t.events[what]++ }

func newTruth() truth {
	return truth{
		sights: map[string]*sight{}, stored: map[string]sight{}, bare: map[string]bool{}, edges: map[edge]int{},
		reported: map[*loss]telling{}, seen: tally{families: map[string]bool{}, events: map[string]int{}},
	}
}

// facts are what the agent can read of one lock now.
type facts struct {
	*hold
	class    class.Class
	bytes    string
	claimed  bool
	shared   bool
	byDesign bool
}

// read is what stands under a key; false if it is no lock.
func (w *world) read(key string) (facts, bool) {
	h := w.holds[key]
	if h == nil || !w.visible(key) {
		return facts{}, false
	}
	ttl := time.Duration(0)
	if !h.expires.IsZero() {
		ttl = max(time.Millisecond, h.expires.Sub(w.now))
	}
	s := h.sample(ttl)
	d := formats.Recognise(s)
	kind, ok := formats.Decide(w.plan.set.Classify(key), s, d)
	if !ok || kind != locksteward.KindLock {
		return facts{}, false
	}
	return facts{
		hold: h, class: w.plan.classOf(key), bytes: s.Type + " " + s.Digest(digestKey), claimed: h.own.claimed(w.now),
		shared: d.SharedToken, byDesign: slices.Contains(noTTLByDesign, d.Format),
	}, true
}

// visible says that something makes the agent look at a key: a class, its name,
// metadata, or that it knows the lock already (docs/scanner.md).
func (w *world) visible(key string) bool {
	if w.plan.set.Classify(key) != (class.Match{}) || formats.MayBeLock(key) {
		return true
	}
	return w.holds[key].own.claimed(w.now) || w.orphan(key) != nil || w.truth.sights[key] != nil && !w.truth.young
}

// look takes a look into what is known, and returns the locks it saw.
func (w *world) look(covers func(key string) bool) map[string]facts {
	seen := map[string]facts{}
	keys := map[string]bool{}
	for key := range w.holds {
		keys[key] = true
	}
	for key := range w.truth.sights {
		keys[key] = true
	}
	for key := range keys {
		if !covers(key) {
			continue
		}
		f, ok := w.read(key)
		if !ok {
			delete(w.truth.sights, key)
			delete(w.truth.bare, key)
			continue
		}
		seen[key] = f
		claim := ""
		if f.claimed {
			claim = f.own.id
		}
		s := w.truth.sights[key]
		if s == nil || s.bytes != f.bytes || s.claim != "" && claim != "" && s.claim != claim {
			if !w.truth.young {
				delete(w.truth.bare, key)
			}
			s = &sight{bytes: f.bytes, first: w.now, real: f.taken, moved: w.now, expires: f.expires}
			w.truth.sights[key] = s
		}
		if !s.expires.Equal(f.expires) {
			s.moved = w.now
		}
		if s.mine.IsZero() {
			s.mine = w.now
		}
		s.claim, s.last, s.expires = claim, w.now, f.expires
		switch {
		case !f.expires.IsZero():
			s.bare, s.leased = time.Time{}, s.leased || !f.shared
			delete(w.truth.bare, key)
		case s.bare.IsZero():
			s.bare = w.now
		}
	}
	return seen
}

// want is what must or may be said of a subject.
type want struct {
	status   []locksteward.Status // any of them; "" is no finding
	severity locksteward.Severity // 0: any
	why      string
	text     string // in the summary
}

// subject is a finding's rule, key and subject.
type subject struct{ rule, key, id string }

const none = locksteward.Status("")

// ttlNone is what ttl/none has to say of a lock.
func (w *world) ttlNone(f facts) want {
	s := w.truth.sights[f.key]
	if !f.expires.IsZero() || f.class.TTL == class.TTLAllowedNone {
		return want{status: []locksteward.Status{none}, why: "it has a TTL, or its class allows none"}
	}
	out := want{severity: locksteward.SeverityCritical, status: []locksteward.Status{locksteward.StatusPending}, why: "no TTL, seen for less than 2 s"}
	if f.byDesign && f.class.TTL != class.TTLRequired {
		out.severity = locksteward.SeverityInfo
	}
	bare := w.now.Sub(s.bare)
	lost := bare >= lostTTLFor
	switch {
	case bare >= noTTLFor, lost && s.leased:
		out.status, out.why = []locksteward.Status{locksteward.StatusFiring}, fmt.Sprintf("no TTL, seen so for %s, with one before: %v", bare, s.leased)
	case lost && s.wasLeased:
		out.status = append(out.status, locksteward.StatusFiring)
	case w.truth.bare[f.key]:
		// Reported before a restart of the agent, which cannot know that this is the next
		// hold; and it has no TTL either.
		out.status = append(out.status, locksteward.StatusFiring)
	}
	return out
}

// tooLong is what hold/too-long has to say of a lock.
func (w *world) tooLong(f facts) want {
	s := w.truth.sights[f.key]
	expect := f.class.Expect
	if f.claimed && f.own.expect > 0 {
		expect = f.own.expect
	}
	if expect == 0 {
		return want{status: []locksteward.Status{none}, why: "nothing is expected of it"}
	}
	// least is what must be known of the age, most what is true.
	least, most := w.now.Sub(s.first), w.now.Sub(s.real)
	switch {
	case f.claimed:
		least, most = w.now.Sub(f.taken), w.now.Sub(f.taken)
	case f.shared && f.expires.IsZero():
		// "Under such a token the age counts [...] not at all without a TTL."
		least, most = 0, 0
	case f.shared:
		// "only for as long as the expiry stood still"
		least, most = min(least, w.now.Sub(s.moved)), w.now.Sub(f.taken)+notMoved
	}
	if f.tells {
		// "the age is by the holder's clock, which may differ from the server's": it
		// may count whole seconds.
		most += time.Second
	}
	// Of a token that is not shared and comes again, s.real counts and not f.taken:
	// "that the age is a minimum, since the token is not fresh per hold".
	out := want{why: fmt.Sprintf("held for %s, known for %s, expected %s", w.now.Sub(f.taken), least, expect)}
	switch {
	case least > expect:
		out.status = []locksteward.Status{locksteward.StatusFiring}
	case most > expect:
		// "both are minimums": the idle time before the first look may be known.
		out.status = []locksteward.Status{none, locksteward.StatusFiring}
	default:
		out.status = []locksteward.Status{none}
	}
	return out
}

// lost is what hold/lost has to say of a loss that the server shows.
func (w *world) lost(l *loss) want {
	now := telling{how: locksteward.EndedExpired, at: w.now}
	deadline := l.deadline
	switch standing := w.holds[l.hold.key]; {
	case l.heir != nil:
		deadline = l.metaEnd.Add(-record.Grace)
		if l.heir.taken.Before(deadline) {
			now.how = locksteward.EndedDeleted
		}
	case standing != nil:
		now.how = locksteward.EndedReplaced
	case w.now.Before(deadline):
		now.how = locksteward.EndedDeleted
	}
	// "What was found first stands."
	first, ok := w.truth.reported[l]
	if !ok || first.how == locksteward.EndedExpired && now.how != locksteward.EndedExpired {
		first = now
	}
	w.truth.reported[l] = first
	out := want{
		status: []locksteward.Status{locksteward.StatusFiring}, severity: locksteward.SeverityInfo,
		text: map[locksteward.EndedHow]string{
			locksteward.EndedExpired: "its lease ran out", locksteward.EndedDeleted: "before its expiry", locksteward.EndedReplaced: "replaced it",
		}[first.how],
		why: fmt.Sprintf("%s ended without a release, reported as %s at %s, deadline %s", l.hold, first.how, first.at.Sub(w.began), deadline.Sub(w.began)),
	}
	beat, ok := l.hold.own.process.heartbeat(w.now)
	if !ok {
		return out
	}
	// "expired: its heartbeat was written after the deadline; deleted or replaced
	// before the deadline: its heartbeat was not overdue (7.5 s) when the loss was
	// found"
	lives := beat.After(deadline)
	if first.how == locksteward.EndedDeleted || first.how == locksteward.EndedReplaced && first.at.Before(deadline) {
		lives = !beat.Before(first.at.Add(-7500 * time.Millisecond))
	}
	if lives {
		out.severity = locksteward.SeverityCritical
	}
	return out
}

// judge compares what the agent says after a look with what is true. full is a
// sweep; else only what it covered is compared.
func (w *world) judge(full bool, covers func(key string) bool, dead map[string][]string) {
	seen := w.look(covers)
	wants := map[subject]want{}
	for key, f := range seen {
		wants[subject{rule: "ttl/none", key: key}] = w.ttlNone(f)
		wants[subject{rule: "hold/too-long", key: key}] = w.tooLong(f)
	}
	if full {
		for _, l := range w.losses {
			if l.shown(w) {
				wants[subject{"hold/lost", l.hold.key, l.hold.own.id}] = w.lost(l)
			}
		}
	}
	findings := map[subject]locksteward.Finding{}
	for _, f := range w.agent.engine.Findings() {
		if !covers(f.Key) || f.Rule == "hold/lost" && !full {
			continue
		}
		w.truth.seen.count(f.Rule + " " + string(f.Status))
		if f.Proof != "" {
			w.truth.seen.count("dead " + string(f.Proof))
			w.judgeDead(f)
		}
		switch f.Rule {
		case "ttl/none", "hold/too-long", "hold/lost":
			at := subject{f.Rule, f.Key, f.Subject}
			if _, ok := wants[at]; !ok {
				w.fail("%s: %s %s on %q, for which there is no reason: %s", w.now.Sub(w.began), f.Status, f.Rule, f.Key, catalogue.Text("en", f.Summary))
			}
			findings[at] = f
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(wants), bySubject) {
		w.compare(at, wants[at], findings[at])
	}
	w.judgeCycles(full, covers)
	if full {
		w.judgeExpressions(seen, dead)
		w.judgeNoise()
		w.keep()
	}
}

func bySubject(a, b subject) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.rule, b.rule), cmp.Compare(a.id, b.id))
}

func (w *world) compare(at subject, is want, f locksteward.Finding) {
	where := fmt.Sprintf("%s: %s on %q", w.now.Sub(w.began), at.rule, at.key)
	if !slices.Contains(is.status, f.Status) {
		w.fail("%s is %q, want one of %q: %s\n%s\n%s", where, f.Status, is.status, is.why, catalogue.Text("en", f.Summary), english(f.Evidence))
	}
	if f.Status == none {
		return
	}
	if is.severity != 0 && f.Severity != is.severity {
		w.fail("%s is %s, want %s: %s\n%s\n%s", where, f.Severity, is.severity, is.why, catalogue.Text("en", f.Summary), english(f.Evidence))
	}
	if !strings.Contains(catalogue.Text("en", f.Summary), is.text) {
		w.fail("%s says %q, want %q in it: %s", where, catalogue.Text("en", f.Summary), is.text, is.why)
	}
}

// judgeDead fails if a finding calls somebody dead who lives, or whose hold is
// another than that which stands there.
func (w *world) judgeDead(f locksteward.Finding) {
	switch h := w.holds[f.Key]; {
	case h == nil:
		w.fail("%s: the holder of %q is called dead, which nobody holds: %s", w.now.Sub(w.began), f.Key, catalogue.Text("en", f.Summary))
	case h.own == nil || h.own.process.alive:
		w.fail("%s: the holder of %s is called dead (%s) and lives: %s\n%s", w.now.Sub(w.began), h, f.Proof, catalogue.Text("en", f.Summary), english(f.Evidence))
	}
}

// judgeExpressions compares the expressions of dead_when that held with the truth.
func (w *world) judgeExpressions(seen map[string]facts, dead map[string][]string) {
	for key, f := range seen {
		s := w.truth.sights[key]
		least, most := w.now.Sub(s.first), w.now.Sub(s.real)
		if f.claimed {
			least, most = w.now.Sub(f.taken), w.now.Sub(f.taken)
		}
		check := func(expression string, must, may bool) {
			holds := slices.Contains(dead[key], expression)
			if holds {
				w.truth.seen.count("dead_when")
			}
			if must && !holds || holds && !may {
				w.fail("%s: dead_when %s: %v on %s, seen for %s, held for %s", w.now.Sub(w.began), expression, holds, f.hold, least, w.now.Sub(f.taken))
			}
		}
		// A constant token is never asked about.
		asked := !f.shared || f.claimed
		if f.class.Name == "long" {
			check(ancient, asked && least > 10*time.Minute, asked && most > 10*time.Minute)
		}
		if f.class.Name == "short" {
			// It is known how long a key was idle when it was first seen, and goes on from
			// there: later looks would see those before them. A restart begins anew.
			bare := asked && f.expires.IsZero()
			check(forsaken, bare && w.now.Sub(s.mine) > 20*time.Minute, bare && w.now.Sub(s.real) > 20*time.Minute)
		}
	}
	for key := range dead {
		if _, ok := seen[key]; !ok {
			w.fail("%s: dead_when holds for %q, which is no lock", w.now.Sub(w.began), key)
		}
	}
}

// judgeNoise fails if something is said of a key that is no lock.
func (w *world) judgeNoise() {
	for _, f := range w.agent.engine.Findings() {
		if w.noise[f.Key] {
			w.fail("%s: %s on %q, which is no lock", w.now.Sub(w.began), f.Rule, f.Key)
		}
	}
}

// keep notes which histories the agent has stored by now.
func (w *world) keep() {
	t := &w.truth
	maps.DeleteFunc(t.stored, func(key string, s sight) bool {
		now := t.sights[key]
		return now == nil || !now.first.Equal(s.first)
	})
	for key, s := range t.sights {
		if s.last.Sub(s.first) >= kept {
			t.stored[key] = *s
		}
	}
	t.young = false
}

// restarted is what an agent that was restarted knows.
func (w *world) restarted() {
	t := &w.truth
	sights := map[string]*sight{}
	for key, s := range t.stored {
		if now := t.sights[key]; now != nil && now.first.Equal(s.first) {
			s.bare = now.bare // findings are stored with each change
		}
		s.leased, s.wasLeased = false, s.leased || s.wasLeased
		s.mine = time.Time{}
		sights[key] = &s
	}
	t.sights, t.young = sights, true
	clear(t.edges)
	clear(t.bare)
	for _, f := range w.agent.store.findings {
		if f.Rule == "ttl/none" && f.Status == locksteward.StatusFiring {
			t.bare[f.Key] = true
		}
	}
}
