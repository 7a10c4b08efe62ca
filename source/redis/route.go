package redis

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// candidateLimit is how many keys that are candidates by name, or have the name
// of a library's locks, and are not known as locks, one pass looks into. Beyond it a candidate is counted by its name
// alone: a built-in pattern that happens to match half of a keyspace must not
// make a sweep read half of a keyspace.
const candidateLimit = 20_000

// maxCandidateNames bounds how many candidates a pass keeps by name; all are counted.
const maxCandidateNames = 1000

// maxCounted bounds how many candidates are remembered so as not to count one
// twice.
const maxCounted = 200_000

// candidateQuota picks which unknown candidates a pass reads when there are too
// many: another part in each sweep, so that all have their turn.
type candidateQuota struct {
	parts uint64 // 1: all
	turn  uint64
}

func (r candidateQuota) takes(hash uint64) bool {
	return r.parts <= 1 || hash%r.parts == r.turn%r.parts
}

// route decides by its name what becomes of a key: nothing, for almost all.
func (p *pass) route(key string) {
	for _, prefix := range p.s.prefixes {
		if strings.HasPrefix(key, prefix) && p.auxiliaryKey(prefix, key) {
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
	known := p.s.remember(key)
	if (match.Candidate || byName) && !known.known {
		if p.tried >= candidateLimit || !p.candidateQuota.takes(p.s.hashOf(key)) {
			if match.Candidate {
				p.candidate(key)
			}
			return
		}
		p.tried++
	}
	if known.known {
		key = known.last.Name
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
	p.out.Candidates++
	if len(p.out.CandidateNames) < maxCandidateNames {
		p.out.CandidateNames = append(p.out.CandidateNames, key)
	}
}

// auxiliaryKey takes a key of our own under prefix, or says that it is not one: an
// application may have locks under such a name too.
func (p *pass) auxiliaryKey(prefix, key string) bool {
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
	case record.KindHold:
		p.metaOf(lockKey, prefix)
	case record.KindWaiter:
		p.extras.waits = append(p.extras.waits, waitKey{lock: lockKey, key: key})
	}
	return true
}

// isFence says that key is the counter that fences the locks of a slot: it changes
// with each of them, and says nothing of one lock.
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
		key: lockKey, match: p.classes.Classify(lockKey), metaPrefix: prefix, memory: p.s.remember(lockKey),
	})
}

// inspect looks at keys and keeps what is a lock. Without a budget it goes on in
// the background until the next call, so that SCAN need not wait for it.
func (p *pass) inspect(ctx context.Context, subjects []subject) error {
	if err := p.collect(ctx); err != nil || len(subjects) == 0 {
		return err
	}
	ahead := make(chan inspected, 1)
	p.ahead, p.inspectedAt = ahead, time.Now()
	if !p.s.unpaced {
		readings, err := p.reader.inspect(ctx, subjects)
		ahead <- inspected{readings, err}
		return p.collect(ctx)
	}
	subjects = slices.Clone(subjects)
	go func() {
		readings, err := p.reader.inspect(ctx, subjects)
		ahead <- inspected{readings, err}
	}()
	return nil
}

// inspected is what came of one inspection.
type inspected struct {
	readings []keyReading
	err      error
}

// collect waits for the inspection that is under way, if there is one, keeps what
// it saw, and hands on what should not wait for the end of the sweep.
func (p *pass) collect(ctx context.Context) error {
	if p.ahead == nil {
		return nil
	}
	got := <-p.ahead
	p.ahead = nil
	p.observe.reuse(len(got.readings))
	clear(p.found)
	batch := source.Batch{Node: p.master.Addr, Began: p.inspectedAt, Readings: p.found[:0]}
	for i := range got.readings {
		if seen := &got.readings[i]; p.add(seen) {
			r := seen.reading()
			r.Number = p.slots[seen.key].at
			batch.Readings = append(batch.Readings, r)
		}
	}
	p.found = batch.Readings
	if len(batch.Readings) > 0 {
		p.progress.sink.Found(ctx, p.progress.part, batch)
	}
	return got.err
}

// add adds one reading to the result and reports whether it saw a lock.
func (p *pass) add(s *keyReading) bool {
	if s.at.After(p.out.At) {
		p.out.At, p.out.AnsweredAt = s.at, p.s.clock()
	}
	p.observe.complete(s, p.master.Addr)
	p.out.Losses = append(p.out.Losses, s.losses...)
	if s.as == gone && s.known {
		p.out.Absent[s.key] = s.at
	}
	if s.as != there {
		return false
	}
	delete(p.out.Absent, s.key)
	at, queued := p.slots[s.key]
	if !queued {
		at.at = -1 // a direct look
	}
	at.meta = at.meta || s.id() != "" // its metadata was looked for
	if s.candidate != nil {
		p.candidate(s.key)
	}
	if s.lock == nil {
		p.slots[s.key] = at
		if s.known {
			p.out.NotLock[s.key] = s.at
		}
		return false
	}
	if s.lock.Claim != nil && s.meta.prefix != p.s.prefixes[0] {
		p.prefixes[s.key] = s.meta.prefix
	}
	if id := s.lock.Holder.Instance; id != "" {
		p.holders[id] = struct{}{}
	}
	if at.at < 0 {
		at.at = p.locks
		p.locks++
	}
	p.slots[s.key] = at
	return true
}

// auxiliaryKeys are the keys beside the locks that are read after the scan.
type auxiliaryKeys struct {
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
			p.out.Instances[got.id] = got.instance
		}
	}
	waiters, err := p.reader.waiters(ctx, p.extras.waits)
	if err != nil {
		return err
	}
	p.s.complete(waiters)
	maps.Copy(p.out.Waiters, waiters)
	if p.out.At.IsZero() {
		p.out.At, err = p.reader.now(ctx)
		p.out.AnsweredAt = p.s.clock()
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
