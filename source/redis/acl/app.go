package acl

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/lock/record"
)

// App says what an application does with lock/.
type App struct {
	Name string // of the user; required
	Hash string // of its password
	// Locks are the patterns of its locks' names; required.
	Locks []string
	// KeyPrefix is its lock.Options.KeyPrefix; "" is record.DefaultPrefix.
	KeyPrefix string
	// DB is the database that it uses, Cluster that the server is a Cluster.
	DB      int
	Cluster bool
}

// appCommands are what lock/ sends and what its scripts call: acquire, renew,
// release, the queue and its hand-over, heartbeats, pushes, Redlock.
var appCommands = []string{
	"+hello", "+auth", "+ping", "+client|setname", "+client|setinfo",
	"+evalsha", "+eval", "+time",
	"+get", "+set", "+del", "+pttl", "+pexpire",
	"+hget", "+hset", "+hmget", "+hdel", "+hlen",
	"+zadd", "+zrem", "+zcard", "+zrank", "+zrange", "+zscore",
	"+pubsub|numsub", "+publish", "+subscribe", "+unsubscribe",
	"+info", // Redlock's guard against a node that was restarted (MinUptime)
}

// clusterCommands come with a Cluster: the client learns where slots are, and
// channels belong to slots.
var clusterCommands = []string{
	"+cluster|slots", "+cluster|shards", "+command", "+pubsub|shardnumsub", "+spublish", "+ssubscribe", "+sunsubscribe",
}

// appKinds are the companions that lock/ itself keeps.
var appKinds = []record.Kind{record.KindHold, record.KindQueue, record.KindWaiter}

// Application returns the user of an application that takes locks with lock/. It
// can do nothing else: what the application wants besides must be added.
func Application(v Version, a App) (User, error) {
	if err := v.check(); err != nil {
		return User{}, err
	}
	var errs []error
	if len(a.Locks) == 0 {
		errs = append(errs, fmt.Errorf("application %q: the names of its locks are missing; give at least one pattern such as lock:%s:*: %w", a.Name, a.Name, locksteward.ErrInvalid))
	}
	if strings.ContainsAny(a.KeyPrefix, "{}") {
		errs = append(errs, fmt.Errorf("application %q: key prefix %q has braces, which lock.Options.KeyPrefix must not: %w", a.Name, a.KeyPrefix, locksteward.ErrInvalid))
	}
	if err := errors.Join(errs...); err != nil {
		return User{}, err
	}
	prefix := cmp.Or(a.KeyPrefix, record.DefaultPrefix)
	u := User{Name: a.Name, For: "the application " + a.Name + ": takes locks with lock/", PasswordHash: a.Hash}
	list := appCommands
	if a.DB != 0 {
		list = append(slices.Clone(list), "+select")
	}
	if a.Cluster {
		list = append(slices.Clone(list), clusterCommands...)
	}
	u.Commands = commands(v, list...)
	for _, glob := range a.Locks {
		own := pattern(glob)
		u.Keys = append(u.Keys, "~"+own)
		for _, kind := range appKinds {
			for _, p := range companions(prefix, kind, own) {
				u.Keys = append(u.Keys, "~"+p)
			}
		}
		if a.Cluster {
			for _, p := range companions(prefix, record.KindWake, own) {
				u.Channels = append(u.Channels, "&"+p+":*")
			}
		}
	}
	p := literal(prefix)
	u.Keys = unique(append(u.Keys, "~"+p+"fence:*", "~"+p+"instance:*"))
	u.Channels = unique(append(u.Channels, "&"+p+"instance:*"))
	if a.KeyPrefix == "" || a.KeyPrefix == record.DefaultPrefix {
		u.Notes = append(u.Notes, "Fences and heartbeats under "+prefix+" are shared with every other application that does not set lock.Options.KeyPrefix; "+
			"give each a prefix of its own (--key-prefix), and name it to the agent in targets[].meta_prefixes.")
	} else {
		u.Notes = append(u.Notes, fmt.Sprintf("The application sets lock.Options.KeyPrefix to %q, and the agent has it in targets[].meta_prefixes.", a.KeyPrefix))
	}
	return u, u.validate()
}
