package lock

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/locksteward/locksteward/lock/record"
)

// Limits of what a caller may ask for.
const (
	MinTTL = 10 * time.Millisecond
	MaxTTL = 24 * time.Hour
	// MaxKey is the longest name of a lock, in bytes.
	MaxKey = 8 << 10
	// MaxMeta is the most that the texts of one hold's metadata may add up to,
	// in bytes.
	MaxMeta = 4 << 10
	// MaxRenewFraction is the largest part of a TTL after which to renew.
	MaxRenewFraction = 0.8
)

// Defaults of [Options].
const (
	DefaultRenewFraction = 1.0 / 3
	DefaultTimeout       = 3 * time.Second
)

// Options tune a [Client]. The zero value is usable.
type Options struct {
	// App names the application in the metadata of its locks.
	App string
	// Host is the machine's name there. Default: os.Hostname.
	Host string
	// Slot is a name that only one live process has at a time (a StatefulSet's
	// pod name), so that a later start under it proves an earlier process dead.
	// Leave it empty where that is not certain.
	Slot string
	// KeyPrefix of the companion keys, to move them under the application's own
	// ACL pattern. Without braces. Default: record.DefaultPrefix.
	KeyPrefix string
	// RenewFraction is the part of the TTL after which a lease is renewed, in
	// (0, 0.8], default 1/3.
	RenewFraction float64
	// Timeout bounds one round trip, and how long a failing server is tried
	// again before an acquire, an Extend or a release gives up. 10 ms to 1 min,
	// default 3 s. A round trip of an acquire or a renewal is bounded by the lease
	// as well.
	Timeout time.Duration
	// PoolSize bounds how many round trips of acquires and releases of a Redlock client
	// are on their way to a node at once. Other clients have few on their way at once,
	// each with one request or, under load, with many: see the package comment.
	// Default: that of the client given to [New] or redlock.New. Further connections are
	// kept for what keeps locks alive.
	PoolSize int
	// EndWithHeartbeat ends all holds with ReasonHeartbeat when the process's
	// heartbeat could not be written before it runs out at the server (15 s): who
	// sees no heartbeat can then be sure that nobody works under those locks.
	EndWithHeartbeat bool
	// Tracer makes spans of what the library does. Default: none.
	Tracer Tracer
	// OnEvent is told what happens, also in the background. It is called from
	// many goroutines, without any lock held, and must return soon. Another can
	// be added with [Client.Observe].
	OnEvent func(Event)
}

func (o Options) withDefaults(poolSize int) Options {
	o.KeyPrefix = cmp.Or(o.KeyPrefix, record.DefaultPrefix)
	o.RenewFraction = cmp.Or(o.RenewFraction, DefaultRenewFraction)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.PoolSize = cmp.Or(o.PoolSize, poolSize)
	if o.Host == "" {
		// A machine that cannot say its name is shown without one.
		o.Host, _ = os.Hostname()
	}
	return o
}

// complete returns o with its defaults, and all problems at once.
func (o Options) complete(poolSize int) (Options, error) {
	o = o.withDefaults(poolSize)
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: Options."+format, append([]any{ErrInvalid}, args...)...))
	}
	if strings.ContainsAny(o.KeyPrefix, "{}") || len(o.KeyPrefix) > 256 {
		bad("KeyPrefix: want at most 256 bytes without braces, got %q", clip(o.KeyPrefix))
	}
	if !fractionOK(o.RenewFraction) {
		bad("RenewFraction: want above 0 and at most %g, got %g", MaxRenewFraction, o.RenewFraction)
	}
	if o.Timeout < 10*time.Millisecond || o.Timeout > time.Minute {
		bad("Timeout: want 10ms to 1m, got %s", o.Timeout)
	}
	if o.PoolSize < 1 || o.PoolSize > 1<<16 {
		bad("PoolSize: want 1 to %d, got %d", 1<<16, o.PoolSize)
	}
	if size := len(o.App) + len(o.Host) + len(o.Slot); size > MaxMeta/2 {
		bad("App, Options.Host and Options.Slot: want at most %d bytes together, got %d", MaxMeta/2, size)
	}
	return o, errors.Join(errs...)
}

// Lease says how long and what for a lock is wanted. TTL is required, all else
// optional.
type Lease struct {
	// TTL is how long the lock outlives its holder at most: 10 ms to 24 h.
	TTL time.Duration
	// Expect is how long the work should take; longer is worth a look.
	Expect time.Duration
	// MaxHold ends the hold: renewal stops and the handle's context ends with
	// ErrMaxHold. The remedy for work that hangs while its lock is renewed.
	// 0: none.
	MaxHold time.Duration
	// Wait is how long Acquire waits for another's release at most; leaving the
	// queue then takes up to 100 ms more. 0: as long as its context.
	Wait time.Duration
	// NoRenew leaves the lease alone: it ends after TTL unless extended.
	NoRenew bool
	// RenewFraction overrides Options.RenewFraction; 0 does not.
	RenewFraction float64
	// Class is the family of locks this one belongs to.
	Class string
	// Purpose is what the lock is taken for, for people who look at it.
	Purpose string
	// Trace is a W3C traceparent.
	Trace string
}

// fraction returns the part of the TTL after which to renew; 0 for never.
func (l Lease) fraction(o Options) float64 {
	if l.NoRenew {
		return 0
	}
	return cmp.Or(l.RenewFraction, o.RenewFraction)
}

// renewEvery returns the interval of renewals; 0 for none.
func (l Lease) renewEvery(o Options) time.Duration {
	return time.Duration(l.fraction(o) * float64(l.TTL))
}

// validate reports all problems of an acquire at once.
func (l Lease) validate(key string, o Options) error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...))
	}
	switch {
	case key == "":
		bad("key: is empty")
	case len(key) > MaxKey:
		bad("key: want at most %d bytes, got %d", MaxKey, len(key))
	case strings.HasPrefix(key, o.KeyPrefix):
		bad("key: %q begins with the prefix %q of the companion keys", clip(key), o.KeyPrefix)
	}
	if l.TTL < MinTTL || l.TTL > MaxTTL {
		bad("Lease.TTL: want %s to %s, got %s", MinTTL, MaxTTL, l.TTL)
	} else if !l.NoRenew {
		f := l.fraction(o)
		switch {
		case !fractionOK(f):
			bad("Lease.RenewFraction: want above 0 and at most %g, got %g", MaxRenewFraction, f)
		case l.renewEvery(o)+l.TTL/10 > l.TTL-drift(l.TTL):
			bad("Lease.RenewFraction: %g of a TTL of %s leaves no time for a renewal; take a smaller part", f, l.TTL)
		}
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"Expect", l.Expect}, {"MaxHold", l.MaxHold}, {"Wait", l.Wait}} {
		if d.value < 0 {
			bad("Lease.%s: want 0 or more, got %s", d.name, d.value)
		}
	}
	size := len(l.Class) + len(l.Purpose) + len(l.Trace) + len(o.App) + len(o.Host)
	if size > MaxMeta {
		bad("Lease.Class, Lease.Purpose, Lease.Trace: metadata of at most %d bytes, got %d", MaxMeta, size)
	}
	return errors.Join(errs...)
}

// fractionOK is false for NaN too.
func fractionOK(f float64) bool { return f > 0 && f <= MaxRenewFraction }

// clip shortens what goes into an error.
func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}
