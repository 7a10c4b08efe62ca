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
	// MaxMeta is the most that the texts of one hold's metadata may add up to, in bytes.
	MaxMeta = 4 << 10

	maxRenewFraction = 0.8
	defaultTimeout   = 3 * time.Second
)

// Options tune a [Client]. The zero value is usable.
type Options struct {
	// App names the application in the metadata of its locks.
	App string
	// Host is the machine's name there. Default: os.Hostname.
	Host string
	// Slot is a name that only one live process has at a time (a StatefulSet's pod name), so that a later start
	// under it proves an earlier process dead. Leave it empty where that is not certain.
	Slot string
	// KeyPrefix of the companion keys, to move them under the application's own ACL pattern. Without braces.
	// Default: record.DefaultPrefix.
	KeyPrefix string
	// Timeout bounds one round trip, and how long a failing server is tried again before an acquire, an Extend or a
	// release gives up. 10 ms to 1 min, default 3 s. The lease bounds a round trip of an acquire or a renewal too.
	Timeout time.Duration
	// EndWithHeartbeat ends all holds with ReasonHeartbeat when the process's heartbeat could not be written before
	// it runs out at the server (15 s): who sees no heartbeat can then be sure that nobody works under those locks.
	EndWithHeartbeat bool
	// Tracer makes spans of what the library does. Default: none.
	Tracer Tracer
}

// complete returns o with its defaults, and all problems at once.
func (o Options) complete() (Options, error) {
	o.KeyPrefix = cmp.Or(o.KeyPrefix, record.DefaultPrefix)
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	if o.Host == "" {
		// A machine that cannot say its name is shown without one.
		o.Host, _ = os.Hostname()
	}
	var p problems
	if strings.ContainsAny(o.KeyPrefix, "{}") || len(o.KeyPrefix) > 256 {
		p.add("Options.KeyPrefix: want at most 256 bytes without braces, got %q", clip(o.KeyPrefix))
	}
	if o.Timeout < 10*time.Millisecond || o.Timeout > time.Minute {
		p.add("Options.Timeout: want 10ms to 1m, got %s", o.Timeout)
	}
	if size := len(o.App) + len(o.Host) + len(o.Slot); size > MaxMeta/2 {
		p.add("Options.App, Options.Host and Options.Slot: want at most %d bytes together, got %d", MaxMeta/2, size)
	}
	return o, errors.Join(p...)
}

// Lease says how long and what for a lock is wanted. TTL is required, all else optional.
type Lease struct {
	// TTL is how long the lock outlives its holder at most: 10 ms to 24 h.
	TTL time.Duration
	// Expect is how long the work should take; longer is worth a look.
	Expect time.Duration
	// MaxHold ends the hold: renewal stops and the handle's context ends with ErrMaxHold. The remedy for work that
	// hangs while its lock is renewed. 0: none.
	MaxHold time.Duration
	// Wait is how long Acquire waits for another's release at most; leaving the queue then takes up to 100 ms more.
	// 0: as long as its context.
	Wait time.Duration
	// NoRenew leaves the lease alone: it ends after TTL unless extended.
	NoRenew bool
	// RenewFraction is the part of the TTL after which the lease is renewed, in (0, 0.8]. 0: a third.
	RenewFraction float64
	// Class is the family of locks this one belongs to.
	Class string
	// Purpose is what the lock is taken for, for people who look at it.
	Purpose string
	// Trace is a W3C traceparent.
	Trace string
}

// renewEvery returns the interval of renewals; 0 for none.
func (l Lease) renewEvery() time.Duration {
	if l.NoRenew {
		return 0
	}
	return time.Duration(cmp.Or(l.RenewFraction, 1.0/3) * float64(l.TTL))
}

// validate reports all problems of an acquire at once.
func (l Lease) validate(key string, o Options) error {
	var p problems
	switch {
	case key == "":
		p.add("key: is empty")
	case len(key) > MaxKey:
		p.add("key: want at most %d bytes, got %d", MaxKey, len(key))
	case strings.HasPrefix(key, o.KeyPrefix):
		p.add("key: %q begins with the prefix %q of the companion keys", clip(key), o.KeyPrefix)
	}
	switch f := cmp.Or(l.RenewFraction, 1.0/3); {
	case l.TTL < MinTTL || l.TTL > MaxTTL:
		p.add("Lease.TTL: want %s to %s, got %s", MinTTL, MaxTTL, l.TTL)
	case l.NoRenew:
	case !(f > 0 && f <= maxRenewFraction): // NaN too
		p.add("Lease.RenewFraction: want above 0 and at most %g, got %g", maxRenewFraction, f)
	case l.renewEvery()+least(l.TTL) > l.TTL-drift(l.TTL):
		p.add("Lease.RenewFraction: %g of a TTL of %s leaves no time for a renewal; take a smaller part", f, l.TTL)
	}
	if l.Expect < 0 || l.MaxHold < 0 || l.Wait < 0 {
		p.add("Lease.Expect, Lease.MaxHold, Lease.Wait: want 0 or more, got %s, %s, %s", l.Expect, l.MaxHold, l.Wait)
	}
	if size := len(l.Class) + len(l.Purpose) + len(l.Trace) + len(o.App) + len(o.Host); size > MaxMeta {
		p.add("Lease.Class, Lease.Purpose, Lease.Trace: metadata of at most %d bytes, got %d", MaxMeta, size)
	}
	return errors.Join(p...)
}

// problems are what is wrong with arguments.
type problems []error

func (p *problems) add(format string, args ...any) {
	*p = append(*p, fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...))
}

// clip shortens what goes into an error.
func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}
