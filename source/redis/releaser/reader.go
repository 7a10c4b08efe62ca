package releaser

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source/redis"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// reading is what was read of a lock.
type reading struct {
	redis.KeyRead
	evidence locksteward.Evidence
	// differences are what is other than the evidence that it was compared with.
	differences []string
}

// read reads the lock that was frozen as was.
func (r *Releaser) read(ctx context.Context, cn *goredis.Conn, was locksteward.Evidence) (reading, error) {
	got, err := redis.ReadKey(ctx, cn, was.Key, r.cfg.MetaPrefixes)
	if err != nil || !got.Found {
		return reading{}, err
	}
	same := was.Type == got.Sample.Type && was.TokenDigest == got.Sample.Digest(r.cfg.Digest)
	if got.AuxiliaryRefused != nil && same && formats.Recognise(got.Sample).Format != was.Library {
		return reading{}, fmt.Errorf("the releasing user may not read the keys beside %q; grant it the patterns of docs/libraries/%s.md", locksteward.DisplayKey(was.Key), was.Library)
	}
	got.MetaPrefix = cmp.Or(got.MetaPrefix, r.cfg.MetaPrefixes[0])
	expireAt := got.ExpireAt
	if !got.First.IsZero() {
		expireAt = expiryBy(got.Sample.TTL, got.First, got.Last, was.ExpireAt)
	}
	return reading{KeyRead: got, evidence: r.evidenceOf(got.Sample, expireAt)}, nil
}

// expiryBy computes when a key expires that has ttl left at some time from before to
// after. That is was, if it may be: readings of the clock differ by 2 ms (same_expiry
// in source/redis/formats/opening.lua).
func expiryBy(ttl time.Duration, before, after time.Time, was int64) int64 {
	if ttl == locksteward.NoExpiry {
		return locksteward.NoExpireAt
	}
	first, last := before.UnixMilli()+ttl.Milliseconds(), after.UnixMilli()+ttl.Milliseconds()
	if was >= first-2 && was <= last+2 {
		return was
	}
	return first
}

// evidenceOf is what a request would freeze of the sample, as far as it is
// compared.
func (r *Releaser) evidenceOf(s formats.Sample, expireAt int64) locksteward.Evidence {
	d := formats.Recognise(s)
	out := locksteward.Evidence{
		Key: s.Key, Type: s.Type, Library: d.Format, Identity: d.Identity, Count: d.Count, ExpireAt: expireAt,
	}
	out.TokenDigest = s.Digest(r.cfg.Digest)
	if d.Claim != nil {
		out.ClaimID = strings.ToValidUTF8(d.Claim.ID, "\uFFFD") // as a request freezes it
	}
	return out
}

// isReplyError says that the server answered.
func isReplyError(err error) bool {
	_, ok := errors.AsType[goredis.Error](err)
	return ok
}
