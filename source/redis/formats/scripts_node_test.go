package formats_test

const (
	redlockToken  = "9f86d081884c0d659a2feaa0c55ad015"
	redlockToken2 = "8f86d081884c0d659a2feaa0c55ad015"
	timedUUID     = "c232ab00-9414-11f0-b3de-b2de8f0d1c7a"
	timedUUID2    = "c232ab01-9414-11f0-b3de-b2de8f0d1c7a"
	dedupKey      = "bull:mail:de:invoice-7"
)

// nodeScripts are the locks of Node's libraries.
var nodeScripts = []script{
	set("node-redlock", "locks:redlock:7", redlockToken, redlockToken2, 1000),
	set("redis-semaphore-mutex", "mutex:order", uuidToken, uuidToken2, 30000),
	{
		format: "redis-semaphore-semaphore", key: "semaphore:printer",
		take:    []command{{"ZADD", "semaphore:printer", 1794970000123, uuidToken}, {"PEXPIRE", "semaphore:printer", 30000}},
		another: []command{{"ZADD", "semaphore:printer", 1794970000124, uuidToken}},
	},
	{
		format: "redis-semaphore-semaphore", key: "semaphore:pool", // two permits of one holder
		take: []command{
			{"ZADD", "semaphore:pool", 1794970000123, uuidToken + "-web_0", 1794970000123, uuidToken + "-web_1"},
			{"PEXPIRE", "semaphore:pool", 30000},
		},
		another: []command{{"ZADD", "semaphore:pool", 1794970000124, uuidToken + "-web_1"}},
	},
	{
		format: "bullmq-job", key: "bull:mail:17:lock",
		take: []command{
			{"SET", "bull:mail:17:lock", uuidToken2 + ":3", "PX", 30000},
			{"SADD", "bull:mail:stalled", "17"},
			{"HSET", "bull:mail:17", "name", "send", "processedOn", 1794970000000},
		},
		another: []command{{"SET", "bull:mail:17:lock", uuidToken2 + ":4", "KEEPTTL"}},
		left:    []string{"bull:mail:stalled", "bull:mail:17"}, // the stalled check needs them
	},
	set("bullmq-job", "{shop}:mail:repeat:9f86:1794970000000:lock", uuidToken2+":3", uuidToken2+":4", 30000),
	set("bull-job", "bull:mail:18:lock", uuidToken, uuidToken2, 30000),
	{
		format: "bullmq-dedup", key: dedupKey, // its job is gone
		take:    []command{{"SET", dedupKey, "17", "NX"}},
		another: []command{{"SET", dedupKey, "18"}},
	},
	{
		format: "bullmq-dedup", key: dedupKey + ":ttl", // its job is over
		take: []command{
			{"SET", dedupKey + ":ttl", "17", "NX", "PX", 30000},
			{"HSET", "bull:mail:17", "name", "send", "finishedOn", 1794970000000},
		},
		another: []command{{"SET", dedupKey + ":ttl", "18", "KEEPTTL"}},
		left:    []string{"bull:mail:17"},
	},
	set("ioredis-lock", "ioredis-lock:order", timedUUID, timedUUID2, 30000),
	set("node-redis-lock", "node-redis-lock:order", uuidToken2, "0f8fad5b-d9cb-469f-a165-70867728950f", 30000),
	set("errorception-redis-lock", "lock.order", "1794970000123", "1794970000124", 30000),
}
