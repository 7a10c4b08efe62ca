-- Releases a go-redislock read/write lock that one token holds, for reading, for
-- writing or for both, if its hash still has exactly the same fields and the
-- same expiry. Its waiters poll, so nobody is woken.
--
-- KEYS:    1 lock · 2 exec record
-- ARGV:    1 request id · 2 PEXPIRETIME · 3 life of the exec record in ms · 4 field, 5 value, and so on
-- Returns: {outcome, woken, recorded}, see opening.lua

local reply = judge('hash')
if reply then return reply end
if redis.call('HLEN', KEYS[1]) * 2 ~= #ARGV - 3 then return settle(CHANGED) end
for i = 4, #ARGV, 2 do
  if redis.call('HGET', KEYS[1], ARGV[i]) ~= ARGV[i + 1] then return settle(CHANGED) end
end
return free({KEYS[1]}, function() return 0 end)
