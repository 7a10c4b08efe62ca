package formats_test

const (
	redsyncToken  = "t3XyRjQ8pW0vKc5nZb2LdA=="
	redsyncToken2 = "u3XyRjQ8pW0vKc5nZb2LdA=="
	bsmValue      = "pX9_tR2vQ-8mKc4nZb7LdA"
	bsmValue2     = "qX9_tR2vQ-8mKc4nZb7LdA"
	rawToken      = "\x00\xff\n\r\x01\x02\xc8x\"\\\x07\x08\tcZ\x80\x81\x82BA@?>="
	rawToken2     = "\x01\xff\n\r\x01\x02\xc8x\"\\\x07\x08\tcZ\x80\x81\x82BA@?>="
	goToken       = "lock_token:" + uuidToken
	goToken2      = "lock_token:" + uuidToken2
	asynqUnique   = "asynq:{mail}:unique:email:send:9f86d081884c7d659a2feaa0c55ad015"
)

// golangScripts are the locks of Go's libraries. What cannot be had as a module
// (go-redislock, Dapr) runs here by the commands of its own scripts.
var golangScripts = []script{
	set("redsync", "redsync:lock:42", redsyncToken, redsyncToken2, 30000),
	set("bsm-redislock", "redislock:order", bsmValue, bsmValue2, 30000),
	set("bsm-redislock", "lock:with metadata", bsmValue+"web-1:4711", bsmValue+"web-1:4712", 30000),
	set("rueidislock", "rueidislock:0:orders", rawToken, rawToken2, 30000),
	set("valkeylock", "valkeylock:12:orders", rawToken, rawToken2, 30000),
	{
		format: "go-redislock-reentrant", key: "{order}",
		take: []command{
			{"SET", "{order}", goToken, "NX", "PX", 30000},
			{"SET", "{order}:count:" + goToken, 2, "PX", 30000},
			// A waiter's counter would be another one, and so is a key of that name.
			{"SET", "{order}:count:" + goToken2, 1, "PX", 30000},
			{"SET", "{order}:queue", "no queue", "PX", 30000},
		},
		another: []command{{"SET", "{order}", goToken2, "KEEPTTL"}},
		left:    []string{"{order}:count:" + goToken2, "{order}:queue"},
	},
	{
		format: "go-redislock-fair", key: "{ticket}",
		take: []command{
			{"ZADD", "{ticket}:queue", 1794970000000, "req-1", 1794970000001, "req-2"},
			{"PEXPIRE", "{ticket}:queue", 30000},
			{"SET", "{ticket}", "req-1", "NX", "PX", 30000},
		},
		another: []command{{"SET", "{ticket}", "req-2", "KEEPTTL"}},
		left:    []string{"{ticket}:queue"},
	},
	{
		format: "go-redislock-rw", key: "stock-lock", // written and read by one
		take: []command{
			{"HSET", "stock-lock", "mode", "write", "writer", goToken, "wcount", 2, "rcount", 1, "r:" + goToken, 1},
			{"PEXPIRE", "stock-lock", 30000},
		},
		another: []command{{"HINCRBY", "stock-lock", "wcount", 1}},
	},
	{
		format: "go-redislock-rw", key: "stock-lock:read",
		take:    []command{{"HSET", "stock-lock:read", "mode", "read", "rcount", 1, "r:" + goToken, 1}, {"PEXPIRE", "stock-lock:read", 30000}},
		another: []command{{"HSET", "stock-lock:read", "r:" + goToken2, 1}, {"HDEL", "stock-lock:read", "r:" + goToken}},
	},
	{
		format: "asynq-unique", key: asynqUnique, // its task is gone
		take:    []command{{"SET", asynqUnique, uuidToken2, "NX", "EX", 60}},
		another: []command{{"SET", asynqUnique, uuidToken, "KEEPTTL"}},
	},
	{
		format: "asynq-unique", key: "asynq:{mail}:unique:report:", // no payload, an archived task
		take: []command{
			{"SET", "asynq:{mail}:unique:report:", uuidToken2, "NX", "EX", 60},
			{"HSET", "asynq:{mail}:t:" + uuidToken2, "msg", "x", "state", "archived", "unique_key", "asynq:{mail}:unique:report:"},
		},
		another: []command{{"SET", "asynq:{mail}:unique:report:", uuidToken, "KEEPTTL"}},
		left:    []string{"asynq:{mail}:t:" + uuidToken2},
	},
	set("dapr-lock", "lock||shop||order", "f2a6b1f0-owner", "f2a6b1f1-owner", 60000),
}
