-- Releases a Redisson fenced lock, if its hash still has exactly the same fields
-- and counts and the same expiry, and its fence has not grown, and wakes its
-- waiters. The fence stays: without it the next holder would get a smaller one.
--
-- KEYS:    1 lock · 2 exec record · 3 fence
-- ARGV:    1 request id · 2 PEXPIRETIME · 3 life of the exec record in ms
--          4 channel · 5 message · 6 fence · 7 field, 8 count, and so on
-- Returns: {outcome, woken, recorded}, see opening.lua

local reply = judge('hash')
if reply then return reply end
if redis.call('GET', KEYS[3]) ~= ARGV[6] or redis.call('HLEN', KEYS[1]) * 2 ~= #ARGV - 6 then return settle(CHANGED) end
for i = 7, #ARGV, 2 do
  if redis.call('HGET', KEYS[1], ARGV[i]) ~= ARGV[i + 1] then return settle(CHANGED) end
end
return free({KEYS[1]}, function() return tell(ARGV[4], ARGV[5]) end)
