package formats

// familyDogpile is dogpile.cache's distributed lock: redis-py's under
// _lock<cache key>, no TTL unless lock_timeout is set.
// Source: sqlalchemy/dogpile.cache dogpile/cache/backends/redis.py.
var familyDogpile = timeUUIDFamily("dogpile", prefixed("_lock"), 0)
