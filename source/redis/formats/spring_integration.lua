-- Releases a lock of Spring Integration's RedisLockRegistry, if it is still the
-- same bytes with the same expiry, and notifies its channel.
--
-- KEYS:    1 lock · 2 exec record
-- ARGV:    1 request id · 2 PEXPIRETIME · 3 life of the exec record in ms · 4 value · 5 channel · 6 message
-- Returns: {outcome, woken, recorded}, see opening.lua

return carry_out{kind = 'string', same = function() return same_value(4) end,
  wake = function() return publish(ARGV[5], ARGV[6]) end}
