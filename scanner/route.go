package scanner

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// candidateRation is how many keys that are candidates by name, or have the name
// of a library's locks, and are not known as locks, one pass looks into. Beyond it a candidate is counted by its name
// alone: a built-in pattern that happens to match half of a keyspace must not
// make a sweep read half of a keyspace.
const candidateRation = 20_000

// maxCounted bounds how many candidates are remembered so as not to count one
// twice.
const maxCounted = 200_000

// ration picks which unknown candidates a pass looks into when there are too
// many: another part in each sweep, so that all have their turn.
type ration struct {
	parts uint64 // 1: all
	turn  uint64
}

func (r ration) takes(hash uint64) bool { return r.parts <= 1 || hash%r.parts == r.turn%r.parts }

// route decides by its name what becomes of a key: nothing, for almost all.
func (p *pass) route(key string) {
	for _, prefix := range p.s.prefixes {
		if strings.HasPrefix(key, prefix) && p.companion(prefix, key) {
			return
		}
	}
	match := p.classes.Classify(key)
	byName := match == (class.Match{})
	if byName && !formats.MayBeLock(key) {
		return
	}
	if library, lock, helper := formats.AuxiliaryKey(key); helper {
		p.helper(key, library, lock)
		return
	}
	if _, again := p.slots[key]; again {
		return // SCAN may return a key more than once
	}
	known := p.s.table.remember(key)
	if (match.Candidate || byName) && !known.known {
		if p.tried >= candidateRation || !p.ration.takes(p.s.hashOf(key)) {
			if match.Candidate {
				p.candidate(key)
			}
			return
		}
		p.tried++
	}
	if known.known {
		key = known.last.key
	}
	p.queue(subject{key: key, match: match, memory: known})
}

func (p *pass) queue(s subject) {
	at, again := p.slots[s.key]
	if !again {
		at.at = -1
	}
	at.meta = s.metaPrefix != "" || s.ours
	p.slots[s.key] = at
	if len(p.todo) == 0 {
		p.todoSince = time.Now()
	}
	p.todo = append(p.todo, s)
}

// candidate counts a key that only looks like a lock by name, once as far as
// memory allows: SCAN rarely returns a key twice.
func (p *pass) candidate(key string) {
	hash := p.s.hashOf(key)
	if _, again := p.counted[hash]; again {
		return
	}
	if len(p.counted) < maxCounted {
		p.counted[hash] = struct{}{}
	}
	p.out.candidates++
	if len(p.out.candidateNames) < maxCandidateNames {
		p.out.candidateNames = append(p.out.candidateNames, key)
	}
}

// companion takes a key of our own under prefix, or says that it is none: an
// application may have locks under such a name too.
func (p *pass) companion(prefix, key string) bool {
	if id, ok := record.ParseInstanceKey(prefix, key); ok {
		p.extras.instances = append(p.extras.instances, instanceKey{id: id, key: key})
		return true
	}
	if isFence(prefix, key) {
		return true
	}
	kind, lockKey, ok := record.ParseCompanion(prefix, key)
	if !ok {
		return false
	}
	switch kind {
	case record.KindMeta:
		p.metaOf(lockKey, prefix)
	case record.KindWaiter:
		p.extras.waits = append(p.extras.waits, waitKey{lock: lockKey, key: key})
	}
	return true
}

// isFence says that key is the counter that fences the locks of a slot: it changes
// with each of them, and tells of none.
func isFence(prefix, key string) bool {
	return strings.HasPrefix(key, prefix) && strings.HasPrefix(key[len(prefix):], "fence:{")
}

// metaOf queues the lock that a metadata key names, whatever its own name is
// like: that is how locks of ours are found that no class matches.
func (p *pass) metaOf(lockKey, prefix string) {
	if at, again := p.slots[lockKey]; again {
		if at.meta {
			return
		}
		for i := range p.todo {
			if p.todo[i].key == lockKey {
				p.todo[i].metaPrefix = prefix
				at.meta = true
				p.slots[lockKey] = at
				return
			}
		}
	}
	p.queue(subject{
		key: lockKey, match: p.classes.Classify(lockKey), metaPrefix: prefix, memory: p.s.table.remember(lockKey),
	})
}

// inspect looks at keys and keeps what is a lock. Without a budget it goes on in
// the background until the next call, so that SCAN need not wait for it.
func (p *pass) inspect(ctx context.Context, subjects []subject) error {
	if err := p.collect(ctx); err != nil || len(subjects) == 0 {
		return err
	}
	ahead := make(chan looked, 1)
	p.ahead, p.looked = ahead, time.Now()
	if !p.s.cfg.NoThrottle {
		sights, err := p.reader.inspect(ctx, subjects)
		ahead <- looked{sights, err}
		return p.collect(ctx)
	}
	subjects = slices.Clone(subjects)
	go func() {
		sights, err := p.reader.inspect(ctx, subjects)
		ahead <- looked{sights, err}
	}()
	return nil
}

// looked is what came of one inspection.
type looked struct {
	sights []sight
	err    error
}

// collect waits for the inspection that is under way, if there is one, keeps what
// it saw, and hands on what should not wait for the end of the sweep.
func (p *pass) collect(ctx context.Context) error {
	if p.ahead == nil {
		return nil
	}
	got := <-p.ahead
	p.ahead = nil
	var news []watchGlance
	for i := range got.sights {
		seen := &got.sights[i]
		l := p.keep(seen)
		if l != nil && p.s.found != nil && p.isNews(seen, l) {
			news = append(news, watchGlance{node: p.master.Addr, sight: seen, l: new(*l), shape: *l.kind})
		}
	}
	p.handOn(ctx, news)
	return got.err
}

// keep takes one look into the result, and returns it if it saw a lock. A second
// look at the same key replaces the first.
func (p *pass) keep(s *sight) *look {
	if s.at.After(p.out.at) {
		p.out.at, p.out.told = s.at, p.s.clock()
	}
	p.out.losses = append(p.out.losses, lossesOf(s, p.s.target, p.master.Addr)...)
	if s.as == gone && s.known {
		p.out.gone[s.key] = s.at
	}
	if s.as != there {
		return nil
	}
	delete(p.out.gone, s.key)
	at, queued := p.slots[s.key]
	if !queued {
		at.at = -1 // a direct look
	}
	at.meta = at.meta || s.id() != "" // its metadata was looked for
	p.slots[s.key] = at
	obs, ok := p.observe.observe(s, p.master.Addr)
	if ok && obs.Kind == locksteward.KindCandidate {
		p.candidate(s.key)
	}
	if !ok || obs.Kind == locksteward.KindCandidate {
		if s.known {
			p.out.noLock[s.key] = s.at
		}
		return nil
	}
	if obs.Claim != nil && s.meta.prefix != p.s.prefixes[0] {
		p.out.prefixes[s.key] = s.meta.prefix
	}
	l, shape := pack(obs)
	l.kind = p.shapes.of(shape)
	var last *look
	if s.last != nil {
		last = &s.last.look
		l.shareFresh(last)
	}
	if at.at >= 0 {
		p.out.locks.set(int(at.at), briefly(&l, last))
		return &l
	}
	at.at = int32(p.out.locks.len())
	p.slots[s.key] = at
	p.out.locks.add(briefly(&l, last))
	return &l
}

// companions are the keys beside the locks that are read after the scan.
type companions struct {
	helpers   []helperKey
	instances []instanceKey
	waits     []waitKey
}

type instanceKey struct{ id, key string }

type waitKey struct{ lock, key string }

func (p *pass) readExtras(ctx context.Context) error {
	instances, err := p.reader.instances(ctx, p.extras.instances)
	if err != nil {
		return err
	}
	for _, got := range instances {
		if got.instance != nil {
			p.out.instances[got.id] = got.instance
		}
	}
	waiters, err := p.reader.waiters(ctx, p.extras.waits)
	if err != nil {
		return err
	}
	maps.Copy(p.out.waiters, waiters)
	if p.out.at.IsZero() {
		p.out.at, err = p.reader.now(ctx)
		p.out.told = p.s.clock()
	}
	return err
}

// beat returns when a heartbeat was written whose key has ttl left at now.
func beat(now time.Time, ttl time.Duration) time.Time {
	if ttl < 0 || ttl > record.HeartbeatTTL {
		return time.Time{} // nobody's heartbeat is written like that
	}
	return now.Add(ttl - record.HeartbeatTTL)
}
