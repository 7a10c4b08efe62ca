-- Releases a go-redislock string lock, if it is still the same bytes with the
-- same expiry, and its auxiliary keys: the counter, which would let its old
-- holder in again without the lock, and its place in the queue of a fair lock,
-- behind which others would wait until it is too old. Waiters poll.
--
-- KEYS:    1 lock · 2 exec record; counter and queue are in its slot by their braces
-- ARGV:    1 request id · 2 PEXPIRETIME · 3 life of the exec record in ms · 4 value
-- Returns: {outcome, woken, recorded}, see opening.lua

local counter, queue = KEYS[1] .. ':count:' .. ARGV[4], KEYS[1] .. ':queue'
return carry_out{kind = 'string', same = function() return same_value(4) end, strip = function()
  local fair = redis.call('TYPE', queue).ok == 'zset'
  record(RELEASED, 0) -- shows that what comes after the removals is allowed
  local gone = redis.pcall('DEL', counter)
  local left = fair and redis.pcall('ZREM', queue, ARGV[4]) or 0
  local why = failed(gone) or failed(left)
  if why then fail(why) end
end}
