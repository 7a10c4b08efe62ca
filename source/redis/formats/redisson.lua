-- Releases a Redisson RLock, if its hash still has exactly the same fields and
-- counts and the same expiry, and wakes its waiters, who would else sleep until
-- the TTL that they last saw. A fencing counter beside the lock stays.
--
-- KEYS:    1 lock · 2 exec record
-- ARGV:    1 request id · 2 PEXPIRETIME · 3 life of the exec record in ms
--          4 channel · 5 message · 6 field, 7 count, and so on
-- Returns: {outcome, woken, recorded}, see opening.lua

return carry_out{kind = 'hash', same = function() return same_fields(6) end,
  wake = function() return publish(ARGV[4], ARGV[5]) end}
