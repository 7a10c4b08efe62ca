-- Releases the one hold that a set or a sorted set of holds has, if it is still
-- the same member with the same score and the same expiry, and alone. Those who
-- wait poll, so nobody is woken.
--
-- KEYS:    1 lock · 2 exec record
-- ARGV:    1 request id · 2 PEXPIRETIME · 3 life of the exec record in ms · 4 type · 5 member · 6 score, empty for a set
-- Returns: {outcome, woken, recorded}, see opening.lua

return carry_out{kind = ARGV[4], same = function()
  if ARGV[4] == 'set' then
    return redis.call('SCARD', KEYS[1]) == 1 and redis.call('SISMEMBER', KEYS[1], ARGV[5]) == 1
  end
  return same_members(5)
end} -- the last member goes with the key
