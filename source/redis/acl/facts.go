package acl

import (
	"slices"
	"strings"
)

// fact is since when a command can stand in an ACL, and what we need it for.
type fact struct {
	name         string // as an ACL writes it, lower case
	major, minor int    // of Redis
	why          string
}

// facts are the commands of all users. Since when a command is there is what the
// server itself says of it: src/commands/*.json of redis/redis ("since"), which is
// also what COMMAND DOCS answers. Before 7.0 a subcommand is any first argument,
// so that a rule for one that the server lacks is taken and does nothing; it is
// left out all the same.
var facts = []fact{
	{"acl|dryrun", 7, 0, "ask whether the user has more rights than it needs, without a trace in ACL LOG"},
	{"auth", 1, 0, "log in"},
	{"client|id", 5, 0, "the watch: where pushes are sent"},
	{"client|no-touch", 7, 2, "leave LRU and LFU data alone"},
	{"client|setinfo", 7, 2, "the client library says who it is"},
	{"client|setname", 2, 6, "CLIENT LIST shows who it is"},
	{"client|tracking", 6, 0, "the watch: receive changes"},
	{"client|trackinginfo", 6, 2, "the watch: check each second that it stands"},
	{"cluster|myid", 3, 0, "which node of a Cluster this is"},
	{"cluster|shards", 7, 0, "who serves which slots of a Cluster"},
	{"cluster|slots", 3, 0, "who serves which slots of a Cluster"},
	{"command", 2, 8, "the client of a Cluster: where the key of a command stands"},
	{"del", 1, 0, "release"},
	{"eval", 2, 6, "run a script: compare and delete in one step"},
	{"evalsha", 2, 6, "run a script by its hash"},
	{"exists", 1, 0, "is the lock of a companion still there"},
	{"get", 1, 0, "compare a value"},
	{"getrange", 2, 4, "the first 4 KiB of a string"},
	{"hdel", 2, 0, "take a waiter or a withdrawn request out of a hash"},
	{"hello", 6, 0, "log in"},
	{"hexists", 2, 0, "is a BullMQ job over"},
	{"hget", 2, 0, "compare a field"},
	{"hgetall", 2, 0, "hash locks, metadata, heartbeats"},
	{"hincrby", 2, 0, "count renewals"},
	{"hlen", 2, 0, "how large a hash is, before it is read"},
	{"hmget", 2, 0, "metadata"},
	{"hset", 2, 0, "metadata; the record of a release"},
	{"hsetnx", 2, 0, "Redlock: when the hold began"},
	{"incrby", 1, 0, "give a permit back"},
	{"info", 1, 0, "version, role, memory, processor time, persistence"},
	{"lindex", 1, 0, "who is at the head of a queue"},
	{"llen", 1, 0, "how long a queue is"},
	{"lpop", 1, 0, "take a dead waiter out of a queue"},
	{"lpush", 1, 0, "wake who sleeps on a list"},
	{"lrange", 1, 0, "a lock that is a list"},
	{"memory|usage", 4, 0, "how large a hash is, before it is read"},
	{"object|idletime", 2, 2, "how long a lock was not touched"},
	{"persist", 2, 2, "undo: give a lock back that had no TTL"},
	{"pexpire", 2, 6, "TTLs"},
	{"pexpireat", 2, 6, "undo: give a lock back its expiry"},
	{"pexpiretime", 7, 0, "the expiry of a lock, exactly"},
	{"ping", 1, 0, "is the server there"},
	{"psubscribe", 2, 0, "keyspace notifications"},
	{"pttl", 2, 6, "the TTL of a lock"},
	{"publish", 2, 0, "wake who waits"},
	{"pubsub|numsub", 2, 8, "does a process listen"},
	{"pubsub|shardnumsub", 7, 0, "hand a lock only to a process that listens, on a Cluster"},
	{"readonly", 3, 0, "read from a replica of a Cluster"},
	{"rename", 1, 0, "set a lock aside, for an undo"},
	{"scan", 2, 8, "find the keys"},
	{"scard", 1, 0, "how large a set is, before it is read"},
	{"select", 1, 0, "a database other than 0"},
	{"sentinel|get-master-addr-by-name", 2, 8, "where the master is"},
	{"sentinel|sentinels", 2, 8, "which other Sentinels there are"},
	{"set", 1, 0, "take a lock; stand in for one"},
	{"sismember", 1, 0, "compare a member"},
	{"smembers", 1, 0, "a lock that is a set"},
	{"spublish", 7, 0, "wake who waits, on a Cluster"},
	{"ssubscribe", 7, 0, "wait to be woken, on a Cluster"},
	{"strlen", 2, 2, "how long a string is"},
	{"subscribe", 2, 0, "receive changes; wait to be woken"},
	{"sunsubscribe", 7, 0, "the end of a wait"},
	{"time", 2, 6, "the server's clock"},
	{"type", 1, 0, "what kind of key it is"},
	{"unsubscribe", 2, 0, "the end of a wait"},
	{"zadd", 1, 2, "queue; stand in for a lock that is a sorted set"},
	{"zcard", 1, 2, "how large a sorted set is, before it is read"},
	{"zrange", 1, 2, "a lock that is a sorted set; who waits"},
	{"zrank", 2, 0, "which place a waiter has"},
	{"zrem", 1, 2, "take a waiter out of a queue"},
	{"zscore", 1, 2, "compare a member"},
}

func factOf(name string) (fact, bool) {
	i, ok := slices.BinarySearchFunc(facts, name, func(f fact, name string) int { return strings.Compare(f.name, name) })
	if !ok {
		return fact{}, false
	}
	return facts[i], true
}

// Why says what a command of a user's list is needed for, "" if it is in none.
func Why(command string) string {
	f, _ := factOf(command)
	return f.why
}

// commands keeps of rules those that grant a command which the server has.
func commands(v Version, rules ...string) []string {
	var list []string
	for _, rule := range rules {
		name, grants := strings.CutPrefix(rule, "+")
		if !grants {
			continue
		}
		if f, ok := factOf(name); ok && !v.since(f.major, f.minor) {
			continue
		}
		list = append(list, rule)
	}
	return list
}
