-- Takes a lock the way that Redisson stores it: a hash of one field, the client's
-- UUID and the thread id, with the re-entrancy count as its value.
--
-- KEYS:    1 lock
-- ARGV:    1 lease in ms · 2 <client uuid>:<thread id>
-- Returns: -1 taken · else the PTTL of the lock that somebody else has

local function free()
  return redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1
end

if not free() then return redis.call('PTTL', KEYS[1]) end
redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return -1
