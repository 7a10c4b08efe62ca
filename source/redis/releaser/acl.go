package releaser

import (
	"strings"

	"github.com/locksteward/locksteward/lock/record"
)

// ACL returns the rules of the Redis user that releases, to be appended to "ACL
// SETUSER name on >password resetkeys": commands, then keys and channels. It is
// the one list: `locksteward acl` and docs/release.md print it. patterns are those
// of the classes whose release is not off, with those of the keys beside their
// locks where a library's page names some; metaPrefixes as in [Config].
// The user cannot scan, and writes only through scripts that this program sends.
func ACL(patterns, metaPrefixes []string) []string {
	if len(metaPrefixes) == 0 {
		metaPrefixes = []string{record.DefaultPrefix}
	}
	rules := []string{
		"-@all",
		// to connect and to find the master of a key
		"+hello", "+auth", "+select", "+client|setname", "+info", "+cluster|slots",
		// to look again
		"+type", "+pttl", "+pexpiretime", "+strlen", "+getrange", "+hlen", "+hgetall", "+memory|usage",
		"+zcard", "+zrange", "+scard", "+smembers", "+llen", "+lrange",
		// the scripts and what they call
		"+eval", "+time", "+get", "+hget", "+hmget", "+hset", "+pexpire", "+del", "+publish", "+spublish",
		"+set", "+zadd", "+rename", "+persist", "+pexpireat",
		"+exists", "+hdel", "+hexists", "+incrby", "+lindex", "+lpop", "+lpush", "+sismember", "+zrem", "+zscore",
	}
	for _, p := range patterns {
		rules = append(rules, "~"+p)
	}
	for _, prefix := range metaPrefixes {
		p := escapeGlob(prefix)
		for _, kind := range []record.Kind{record.KindExec, record.KindHold, record.KindQueue, record.KindWaiter, record.KindUndo} {
			rules = append(rules, "~"+p+string(kind)+":*")
		}
	}
	rules = append(rules, "resetchannels")
	for _, prefix := range metaPrefixes {
		p := escapeGlob(prefix)
		rules = append(rules, "&"+p+string(record.KindWake)+":*", "&"+p+"instance:*")
	}
	return append(rules, "&redisson_lock__channel:*", "&redisson_rwlock:*", "&redisson_sc:*")
}

// escapeGlob makes a prefix stand for itself in a pattern.
func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}
