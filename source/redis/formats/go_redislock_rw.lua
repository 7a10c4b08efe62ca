-- Releases a go-redislock read/write lock that one token holds, for reading, for
-- writing or for both, if its hash still has exactly the same fields and the
-- same expiry. Its waiters poll, so nobody is woken.
--
-- KEYS:    1 lock · 2 exec record
-- ARGV:    1 request id · 2 PEXPIRETIME · 3 life of the exec record in ms · 4 field, 5 value, and so on
-- Returns: {outcome, woken, recorded}, see opening.lua

return carry_out{kind = 'hash', same = function() return same_fields(4) end}
