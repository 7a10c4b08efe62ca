-- Gives back the one permit of a Redisson RPermitExpirableSemaphore that is
-- taken, if it is still the same permit with the same end, and tells those who
-- wait how many are free now, as the library does.
--
-- KEYS:    1 permits taken · 2 exec record · 3 number of free permits
-- ARGV:    1 request id · 2 PEXPIRETIME · 3 life of the exec record in ms
--          4 channel · 5 permit · 6 its end in ms
-- Returns: {outcome, woken, recorded}, see opening.lua

local reply = judge('zset')
if reply then return reply end
local ends = redis.call('ZSCORE', KEYS[1], ARGV[5])
if not ends or tonumber(ends) ~= tonumber(ARGV[6]) or redis.call('ZCARD', KEYS[1]) ~= 1 then return settle(CHANGED) end
-- The last member goes with the key itself.
return free({KEYS[1]}, function()
  return tell(ARGV[4], redis.call('INCRBY', KEYS[3], 0) + 1) -- shows that INCRBY is allowed
end, function() redis.call('INCRBY', KEYS[3], 1) end)
