package redis

import (
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// observer turns what was seen of a key into an observation.
type observer struct {
	target locksteward.Target
	digest locksteward.DigestKey
	// placeholder is Options.Placeholder.
	placeholder func(key, requestID string) bool
	// texts keeps one copy of texts that many locks share.
	texts texts
	// slab has the observations of the batch that is being made; see [observer.reuse].
	slab []locksteward.Observation
}

// reuse makes the observations of the batch before free for the next one, of at most n
// keys. Without it each is allocated on its own.
func (o *observer) reuse(n int) {
	if cap(o.slab) < n {
		o.slab = make([]locksteward.Observation, 0, n)
	}
	clear(o.slab)
	o.slab = o.slab[:0]
}

// keep returns where obs stays until the next reuse.
func (o *observer) keep(obs locksteward.Observation) *locksteward.Observation {
	if len(o.slab) == cap(o.slab) {
		return new(obs)
	}
	o.slab = append(o.slab, obs)
	return &o.slab[len(o.slab)-1]
}

// texts interns short texts. It is bounded: unbounded sets (session ids) gain
// nothing from it.
type texts map[string]string

const maxTexts = 4096

func (t texts) of(s string) string {
	if kept, ok := t[s]; ok {
		return kept
	}
	if len(t) < maxTexts && len(s) <= 128 {
		t[s] = s
	}
	return s
}

// complete works out what s says of a lock on the master at node.
func (o *observer) complete(s *keyReading, node string) {
	s.losses = lossesOf(s, o.target, node)
	if s.as != there {
		return
	}
	obs, ok := o.observe(s, node)
	if !ok {
		return
	}
	if kept := o.keep(obs); obs.Kind == locksteward.KindCandidate {
		s.candidate = kept
	} else {
		s.lock = kept
	}
}

// observe returns what s is, or false when it is neither lock nor candidate.
func (o *observer) observe(s *keyReading, node string) (locksteward.Observation, bool) {
	if id, ok := formats.PlaceholderRequest(s.sample); ok && o.placeholder != nil && o.placeholder(s.key, id) {
		return locksteward.Observation{}, false
	}
	s.sample.Meta = s.meta.record
	decoded := formats.Recognise(s.sample)
	kind, ok := formats.Decide(s.match, s.sample, decoded)
	if !ok {
		return locksteward.Observation{}, false
	}
	if kind == locksteward.KindLock && formats.IsPlaceholder(s.sample) {
		decoded.SharedToken, decoded.TokenKind = false, locksteward.UnverifiedPlaceholder
	}
	obs := locksteward.Observation{
		Target:      o.target.Name,
		DB:          o.target.DB,
		Node:        node,
		Key:         s.key,
		Type:        o.texts.of(s.sample.Type),
		At:          s.at,
		Lifetime:    locksteward.LifetimeLease,
		TTL:         s.sample.TTL,
		ExpireAt:    s.expireAt,
		Idle:        s.idle,
		Size:        s.sample.Size,
		TooLarge:    s.sample.TooLarge,
		Kind:        kind,
		Class:       s.match.Class,
		Configured:  s.match.Configured,
		Library:     decoded.Format,
		Confidence:  decoded.Confidence,
		Identity:    decoded.Identity,
		SharedToken: decoded.SharedToken,
		TokenKind:   decoded.TokenKind,
		Acquired:    decoded.Acquired,
		Asked:       decoded.Asked,
		Mode:        decoded.Mode,
		Holder:      o.holder(decoded.Holder),
		Count:       decoded.Count,
		Fence:       decoded.Fence,
		Waiters:     decoded.Waiters,
		Claim:       o.claim(decoded.Claim),
	}
	if obs.TTL == locksteward.NoExpiry {
		obs.Lifetime = locksteward.LifetimePersistent
	}
	if obs.Claim == nil {
		obs.RenewEvery = decoded.RenewEvery
	}
	if obs.Class == "" {
		obs.Class = class.Default
	}
	if obs.TooLarge {
		obs.Identity = locksteward.IdentityNone
		return obs, true
	}
	obs.TokenDigest = s.sample.Digest(o.digest)
	return obs, true
}

func (o *observer) holder(h locksteward.Holder) locksteward.Holder {
	h.App, h.Host, h.Instance = o.texts.of(h.App), o.texts.of(h.Host), o.texts.of(h.Instance)
	return h
}

func (o *observer) claim(c *locksteward.Claim) *locksteward.Claim {
	if c != nil {
		c.Class, c.Purpose = o.texts.of(c.Class), o.texts.of(c.Purpose)
	}
	return c
}

// asItStood decodes metadata whose lock is gone as if the lock still stood.
func asItStood(key string, m *record.Meta) (claim locksteward.Claim, holder locksteward.Holder, ok bool) {
	value := []byte(record.Value(m.ID, "lost"))
	decoded := formats.Recognise(formats.Sample{
		Key: key, Type: "string", TTL: time.Millisecond, Size: int64(len(value)), Value: value, Meta: m,
	})
	if decoded.Claim == nil {
		return claim, holder, false
	}
	return *decoded.Claim, decoded.Holder, true
}
