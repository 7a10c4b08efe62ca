-- Releases a lock that is one string, if it is still the same bytes with the
-- same expiry. Its waiters poll, so nobody is woken.
--
-- KEYS:    1 lock · 2 exec record
-- ARGV:    1 request id · 2 PEXPIRETIME · 3 life of the exec record in ms · 4 value
-- Returns: {outcome, woken, recorded}, see opening.lua

return carry_out{kind = 'string', same = function() return same_value(4) end}
