-- Releases a Redisson fenced lock, if its hash still has exactly the same fields
-- and counts and the same expiry, and its fence has not grown, and wakes its
-- waiters. The fence stays: without it the next holder would get a smaller one.
--
-- KEYS:    1 lock · 2 exec record · 3 fence
-- ARGV:    1 request id · 2 PEXPIRETIME · 3 life of the exec record in ms
--          4 channel · 5 message · 6 fence · 7 field, 8 count, and so on
-- Returns: {outcome, woken, recorded}, see opening.lua

return carry_out{kind = 'hash',
  same = function() return redis.call('GET', KEYS[3]) == ARGV[6] and same_fields(7) end,
  wake = function() return publish(ARGV[4], ARGV[5]) end}
