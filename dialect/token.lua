-- Releases a lock that is one string, if it is still the same bytes with the
-- same expiry. Its waiters poll, so nobody is woken.
--
-- KEYS:    1 lock · 2 exec record
-- ARGV:    1 request id · 2 PEXPIRETIME · 3 life of the exec record in ms · 4 value
-- Returns: {outcome, woken, recorded}, see opening.lua

local reply = judge('string')
if reply then return reply end
if redis.call('GET', KEYS[1]) ~= ARGV[4] then return settle(CHANGED) end
return free({KEYS[1]}, function() return 0 end)
