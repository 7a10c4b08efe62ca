package releaser

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// What is read of a lock at most, as the scanner does: more is never releasable.
const (
	maxValue   = 4096
	maxFields  = 64
	maxHashMem = 16 << 10
)

// reading is what was read of a lock.
type reading struct {
	found    bool
	sample   formats.Sample
	prefix   string // of the companions; "" for the default
	evidence locksteward.Evidence
	// differences are what is other than the evidence that it was compared with.
	differences []string
}

// read reads the lock in two round trips, bounded.
func (r *Releaser) read(ctx context.Context, cn *redis.Conn, was locksteward.Evidence) (reading, error) {
	key := was.Key
	head := cn.Pipeline()
	kind, before, ttl, after := head.Type(ctx, key), head.Time(ctx), head.PTTL(ctx, key), head.Time(ctx)
	at := head.Do(ctx, "pexpiretime", key)
	if _, err := head.Exec(ctx); err != nil && !isReplyError(err) {
		return reading{}, err
	}
	if err := errors.Join(kind.Err(), ttl.Err()); err != nil {
		return reading{}, err
	}
	if kind.Val() == "none" {
		return reading{}, nil
	}
	out := reading{found: true, sample: formats.Sample{Key: key, Type: kind.Val(), TTL: ttlOf(ttl.Val())}}
	if err := r.readValue(ctx, cn, &out.sample); err != nil {
		return reading{}, err
	}
	denied, err := readAuxiliary(ctx, cn, &out.sample)
	if err != nil {
		return reading{}, err
	}
	same := was.Type == out.sample.Type && was.TokenDigest == out.sample.Digest(r.cfg.Digest)
	if denied != "" && same && formats.Recognise(out.sample).Format != was.Library {
		return reading{}, fmt.Errorf("read %q beside the lock: the releasing user may not; grant it the patterns of docs/libraries/%s.md", locksteward.DisplayKey(denied), was.Library)
	}
	if err := r.readMeta(ctx, cn, &out); err != nil {
		return reading{}, err
	}
	expireAt, err := at.Int64()
	if err != nil {
		// A server without PEXPIRETIME: the script compares by time and PTTL, too.
		expireAt = was.ExpireAt
		if before.Err() == nil && after.Err() == nil && ttl.Val() != gone {
			expireAt = expiryBy(out.sample.TTL, before.Val(), after.Val(), was.ExpireAt)
		}
	}
	out.evidence = r.evidenceOf(out.sample, expireAt)
	return out, nil
}

// gone is the PTTL of a key that ended since its type was asked for.
const gone = -2

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

func (r *Releaser) readValue(ctx context.Context, cn *redis.Conn, s *formats.Sample) error {
	body := cn.Pipeline()
	switch s.Type {
	case "string":
		size, value := body.StrLen(ctx, s.Key), body.GetRange(ctx, s.Key, 0, maxValue-1)
		if _, err := body.Exec(ctx); err != nil {
			return ignoreWrongType(err, s)
		}
		s.Size, s.Value = size.Val(), []byte(value.Val())
		s.TooLarge = s.Size > int64(len(s.Value))
	case "hash":
		size, memory := body.HLen(ctx, s.Key), body.MemoryUsage(ctx, s.Key)
		if _, err := body.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
			return ignoreWrongType(err, s)
		}
		s.Size = size.Val()
		if s.TooLarge = s.Size > maxFields || memory.Val() > maxHashMem; s.TooLarge {
			return nil
		}
		fields, err := cn.HGetAll(ctx, s.Key).Result()
		if err != nil {
			return ignoreWrongType(err, s)
		}
		s.Fields = fields
	default:
		return readMembers(ctx, cn, s)
	}
	return nil
}

// ignoreWrongType takes a key that became another type between two commands for
// what it is: changed. TooLarge keeps everything else away from it.
func ignoreWrongType(err error, s *formats.Sample) error {
	if redis.HasErrorPrefix(err, "WRONGTYPE") {
		s.TooLarge = true
		return nil
	}
	return err
}

// readMeta looks for metadata of this very acquisition under each prefix.
func (r *Releaser) readMeta(ctx context.Context, cn *redis.Conn, out *reading) error {
	id, ours := record.ParseValue(out.sample.Value)
	if !ours {
		out.prefix = r.cfg.MetaPrefixes[0]
		return nil
	}
	names := []string{
		record.FieldV, record.FieldID, record.FieldSession, record.FieldInstance, record.FieldHolds, record.FieldFence,
	}
	out.prefix = r.cfg.MetaPrefixes[0]
	for _, prefix := range r.cfg.MetaPrefixes {
		values, err := cn.HMGet(ctx, record.Companion(prefix, record.KindMeta, out.sample.Key), names...).Result()
		if redis.HasErrorPrefix(err, "WRONGTYPE") {
			continue
		}
		if err != nil {
			return err
		}
		fields := map[string]string{}
		for i, v := range values {
			if s, ok := v.(string); ok {
				fields[names[i]] = s
			}
		}
		// Malformed parts are left out; the id is what decides.
		meta, _ := record.Decode(fields)
		if meta != nil && meta.ID == id {
			out.sample.Meta, out.prefix = meta, prefix
			return nil
		}
	}
	return nil
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

// ttlOf corrects what go-redis makes of PTTL's -1 and -2.
func ttlOf(ttl time.Duration) time.Duration {
	if ttl < 0 {
		return locksteward.NoExpiry
	}
	return ttl
}

// isReplyError says that the server answered.
func isReplyError(err error) bool {
	_, ok := errors.AsType[redis.Error](err)
	return ok
}
