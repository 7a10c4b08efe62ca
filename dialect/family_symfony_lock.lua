-- Releases a Symfony lock that one token holds, if its set still has exactly the
-- same members with the same times and the same expiry: a renewal moves both.
-- Its waiters poll, so nobody is woken.
--
-- KEYS:    1 lock · 2 exec record
-- ARGV:    1 request id · 2 PEXPIRETIME · 3 life of the exec record in ms · 4 member, 5 score, and so on
-- Returns: {outcome, woken, recorded}, see opening.lua

local reply = judge('zset')
if reply then return reply end
if redis.call('ZCARD', KEYS[1]) * 2 ~= #ARGV - 3 then return settle(CHANGED) end
for i = 4, #ARGV, 2 do
  local score = redis.call('ZSCORE', KEYS[1], ARGV[i])
  if not score or tonumber(score) ~= tonumber(ARGV[i + 1]) then return settle(CHANGED) end
end
return free({KEYS[1]}, function() return 0 end)
