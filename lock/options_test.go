package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/lock"
)

// nowhere is a client that fails the test's expectations if anything is sent:
// nothing listens there.
func nowhere(t *testing.T) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// Promise: never without TTL; bad input is named before anything is sent.
// fault: 52
func TestBadLeaseIsRefusedBeforeSending(t *testing.T) {
	t.Parallel()
	c := open(t, nowhere(t), lock.Options{App: "a"})
	ok := lock.Lease{TTL: time.Second}
	for name, tc := range map[string]struct {
		key   string
		lease lock.Lease
		want  []string
	}{
		"empty key":         {"", ok, []string{"key"}},
		"long key":          {strings.Repeat("x", lock.MaxKey+1), ok, []string{"key", "8193"}},
		"companion":         {"locksteward:meta:{a}", ok, []string{"key", "prefix"}},
		"no TTL":            {"k", lock.Lease{}, []string{"Lease.TTL", "0s"}},
		"negative TTL":      {"k", lock.Lease{TTL: -time.Second}, []string{"Lease.TTL", "-1s"}},
		"short TTL":         {"k", lock.Lease{TTL: 9999 * time.Microsecond}, []string{"Lease.TTL"}},
		"long TTL":          {"k", lock.Lease{TTL: 24*time.Hour + 1}, []string{"Lease.TTL"}},
		"huge TTL":          {"k", lock.Lease{TTL: math.MaxInt64}, []string{"Lease.TTL"}},
		"negative fraction": {"k", lock.Lease{TTL: time.Second, RenewFraction: -0.1}, []string{"RenewFraction"}},
		"large fraction":    {"k", lock.Lease{TTL: time.Second, RenewFraction: 0.81}, []string{"RenewFraction", "0.81"}},
		"NaN":               {"k", lock.Lease{TTL: time.Second, RenewFraction: math.NaN()}, []string{"RenewFraction"}},
		"no time to renew":  {"k", lock.Lease{TTL: lock.MinTTL, RenewFraction: 0.8}, []string{"RenewFraction", "10ms"}},
		"negative times": {
			"k",
			lock.Lease{TTL: time.Second, Expect: -1, MaxHold: -1, Wait: -1},
			[]string{"Lease.Expect", "Lease.MaxHold", "Lease.Wait"},
		},
		"large metadata":  {"k", lock.Lease{TTL: time.Second, Purpose: strings.Repeat("x", lock.MaxMeta)}, []string{"Lease.Purpose"}},
		"all at once":     {"", lock.Lease{Expect: -1}, []string{"key", "Lease.TTL", "Lease.Expect"}},
		"non-finite frac": {"k", lock.Lease{TTL: time.Second, RenewFraction: math.Inf(1)}, []string{"RenewFraction"}},
	} {
		_, err := c.Acquire(t.Context(), tc.key, tc.lease)
		if !errors.Is(err, lock.ErrInvalid) {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		for _, w := range tc.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not name %s", name, err, w)
			}
		}
		if len(err.Error()) > 1000 {
			t.Errorf("%s: error of %d bytes", name, len(err.Error()))
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	t.Cleanup(func() { _ = ring.Close() })
	for name, rdb := range map[string]redis.UniversalClient{
		"nil": nil, "typed nil": (*redis.Client)(nil), "typed nil cluster": (*redis.ClusterClient)(nil), "ring": ring, "wrapped": wrapped{},
	} {
		if _, err := lock.New(rdb, lock.Options{}); !errors.Is(err, lock.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := lock.New(nowhere(t), lock.Options{
		KeyPrefix: "a{b}", Timeout: time.Hour, App: strings.Repeat("x", lock.MaxMeta),
	})
	for _, w := range []string{"KeyPrefix", "Timeout", "App"} {
		if err == nil || !strings.Contains(err.Error(), "Options."+w) {
			t.Errorf("%v does not name %s", err, w)
		}
	}
}

type wrapped struct{ redis.UniversalClient }

// Secrets: nothing that a program prints by accident has the token.
func TestNothingPrintsTheToken(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	h := mustAcquire(t, b.client, "k", lease())
	token := b.rdb.Get(t.Context(), "k").Val()
	secret := token[strings.LastIndex(token, ":")+1:]
	type holder struct{ H *lock.Handle }
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		for _, v := range []any{h, b.client, h.Context(), holder{h}, &holder{h}} {
			if s := fmt.Sprintf(format, v); strings.Contains(s, secret) {
				t.Errorf("%s of %T shows the token: %s", format, v, s)
			}
		}
	}
	mustRelease(t, h)
}

func TestKeyPrefixMovesCompanions(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{KeyPrefix: "billing:ls:"})
	h := mustAcquire(t, b.client, "billing:lock", lease())
	for _, key := range []string{"billing:ls:hold:{billing:lock}", "billing:lock"} {
		if exists(t, b.rdb, key) != 1 {
			t.Errorf("no %s", key)
		}
	}
	if keys := b.rdb.Keys(context.Background(), "locksteward:*").Val(); len(keys) != 0 {
		t.Errorf("keys under the default prefix: %q", keys)
	}
	mustRelease(t, h)
}
