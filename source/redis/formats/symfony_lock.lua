-- Releases a Symfony lock that one token holds, if its set still has exactly the
-- same members with the same times and the same expiry: a renewal moves both.
-- Its waiters poll, so nobody is woken.
--
-- KEYS:    1 lock · 2 exec record
-- ARGV:    1 request id · 2 PEXPIRETIME · 3 life of the exec record in ms · 4 member, 5 score, and so on
-- Returns: {outcome, woken, recorded}, see opening.lua

return carry_out{kind = 'zset', same = function() return same_members(4) end}
