-- Gives back the one permit of a Redisson RPermitExpirableSemaphore that is
-- taken, if it is still the same permit with the same end, and notifies those who
-- wait how many are free now, as the library does.
--
-- KEYS:    1 permits taken · 2 exec record · 3 number of free permits
-- ARGV:    1 request id · 2 PEXPIRETIME · 3 life of the exec record in ms
--          4 channel · 5 permit · 6 its end in ms
-- Returns: {outcome, woken, recorded}, see opening.lua

-- The last member goes with the key itself.
return carry_out{kind = 'zset', same = function() return same_members(5) end,
  wake = function() return publish(ARGV[4], redis.call('INCRBY', KEYS[3], 0) + 1) end, -- shows that INCRBY is allowed
  after = function() redis.call('INCRBY', KEYS[3], 1) end}
