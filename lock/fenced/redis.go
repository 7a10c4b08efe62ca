package fenced

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed set.lua
	setText   string
	setScript = redis.NewScript(setText)
)

// Set stores value under key with the fence of the hold that writes it, unless
// the key has seen a greater one. The key is a hash of its own with the fields
// fence and value, without TTL; read it with [Get]. To empty it set "": deleted,
// it would forget the fence.
//
// Errors: [ErrInvalid]; [ErrStale] (a [*StaleError]); else what Redis said, an
// error reply of WRONGTYPE or FENCE for a key that is something else.
func Set(ctx context.Context, rdb redis.UniversalClient, key string, fence int64, value string) error {
	err := errors.Join(checkName("key", key, MaxKey), checkFence(fence))
	if rdb == nil {
		err = errors.Join(err, fmt.Errorf("%w: client is nil", ErrInvalid))
	}
	if err != nil {
		return fmt.Errorf("set fenced key: %w", err)
	}
	// A retry of the client's is harmless: the same fence may write again.
	text, err := setScript.Run(ctx, rdb, []string{key}, strconv.FormatInt(fence, 10), value).Text()
	if err != nil {
		return fmt.Errorf("set fenced key %q: %w", key, err)
	}
	seen, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return fmt.Errorf("set fenced key %q: read fence: %w", key, err)
	}
	if seen != fence {
		return &StaleError{Key: key, Fence: fence, Seen: seen}
	}
	return nil
}

// Get returns what [Set] stored last, and its fence. It needs none: who reads
// harms nobody, but what was read may be old before it is used.
//
// Errors: [ErrInvalid]; redis.Nil for a key that is not there; else what Redis said, or that
// the key is not one of Set.
func Get(ctx context.Context, rdb redis.UniversalClient, key string) (value string, fence int64, err error) {
	err = checkName("key", key, MaxKey)
	if rdb == nil {
		err = errors.Join(err, fmt.Errorf("%w: client is nil", ErrInvalid))
	}
	if err != nil {
		return "", 0, fmt.Errorf("get fenced key: %w", err)
	}
	fields, err := rdb.HGetAll(ctx, key).Result()
	if err == nil && len(fields) == 0 {
		err = redis.Nil
	}
	if err != nil {
		return "", 0, fmt.Errorf("get fenced key %q: %w", key, err)
	}
	fence, err = strconv.ParseInt(fields["fence"], 10, 64)
	if err != nil {
		return "", 0, fmt.Errorf("get fenced key %q: read fence: %w", key, err)
	}
	value, ok := fields["value"]
	if !ok {
		return "", 0, fmt.Errorf("get fenced key %q: %w", key, errors.New("hash has no field value"))
	}
	return value, fence, nil
}
