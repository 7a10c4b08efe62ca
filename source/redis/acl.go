package redis

// ACL returns the rules of the read-only Redis user that the scanner needs, to
// be appended to "ACL SETUSER name on >password resetkeys": commands, channels
// and key patterns ("*" when none is given; the names of all keys are visible to
// SCAN whatever the patterns). It is the one list; `locksteward acl` and the docs
// print it. Redis 7.2 and later take "+client|no-touch" as well, see
// [ACLNoTouch].
func ACL(patterns ...string) []string {
	if len(patterns) == 0 {
		patterns = []string{"*"}
	}
	rules := []string{
		"-@all",
		"+hello", "+auth", "+ping", "+select",
		"+scan", "+type", "+pttl", "+pexpiretime", "+exists", "+time", "+info",
		"+getrange", "+get", "+strlen",
		"+hlen", "+hgetall", "+hmget",
		"+zcard", "+zrange", "+zscore",
		"+scard", "+smembers",
		"+llen", "+lrange",
		"+object|idletime", "+memory|usage",
		"+client|id", "+client|setname", "+client|tracking", "+client|trackinginfo",
		"+cluster|shards", "+cluster|slots", "+cluster|myid",
		"+readonly", "+subscribe", "+pubsub|numsub",
		"&__redis__:invalidate", "&locksteward:*",
	}
	for _, p := range patterns {
		rules = append(rules, "%R~"+p)
	}
	return rules
}

// ACLNoTouch is the one more rule for Redis 7.2 and later: with it the reads of
// the scanner leave the keys' LRU and LFU data alone.
const ACLNoTouch = "+client|no-touch"
