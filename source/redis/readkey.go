package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// KeyRead is what [ReadKey] found.
type KeyRead struct {
	Found bool
	// Sample has the key's content with the metadata and the auxiliary keys beside it.
	Sample formats.Sample
	// MetaPrefix is that of the metadata of this very hold, "" if there is none.
	MetaPrefix string
	// ExpireAt is when the key expires, in ms since 1970, or locksteward.NoExpireAt.
	ExpireAt int64
	// First and Last are the server's times between which Sample.TTL was read, where
	// ExpireAt was computed from it; zero where the server gave ExpireAt itself.
	First, Last time.Time
	// AuxiliaryRefused is the server's answer where keys beside the lock may not be
	// read: the lock may look like one of another format.
	AuxiliaryRefused error
}

// ReadKey reads one key as a sweep does and within the same bounds, through a client or
// connection to the master that has it. Metadata is looked for under each of prefixes.
// The user needs no right to OBJECT IDLETIME; a right that is missing for anything else
// is an error, which wraps the server's.
func ReadKey(ctx context.Context, client pipeliner, key string, prefixes []string) (KeyRead, error) {
	r := &reader{
		client: client, caps: newCaps(), prefixes: prefixes, noIdle: true,
		clockRead: func(string, time.Time, time.Time, time.Time) {},
		call:      func(_ context.Context, _ int, pipeline func() error) error { return pipeline() },
	}
	began := time.Now()
	readings, err := r.inspect(ctx, []subject{{key: key}})
	took := time.Since(began)
	if err != nil {
		return KeyRead{}, err
	}
	s := &readings[0]
	if err := r.caps.refusalOf("memory|usage"); err != nil {
		return KeyRead{}, fmt.Errorf("read size: %w", err)
	}
	switch {
	case s.as == gone:
		return KeyRead{}, nil
	case s.as != there:
		if r.caps.forbiddenBy != nil {
			return KeyRead{}, r.caps.forbiddenBy
		}
		return KeyRead{}, errors.New("it changes too fast to be read, or is too long")
	}
	s.sample.Meta = s.meta.record
	out := KeyRead{Found: true, Sample: s.sample, ExpireAt: s.expireAt, AuxiliaryRefused: r.caps.refusalOf(auxiliaryRight)}
	if m := s.meta.record; m != nil && m.ID != "" && m.ID == s.id() {
		out.MetaPrefix = s.meta.prefix
	}
	if s.expireAt != locksteward.NoExpireAt && r.caps.refusalOf("pexpiretime") != nil {
		out.First, out.Last = s.at, s.at.Add(took)
	}
	return out, nil
}
