-- Returns the one permit of a redis-semaphore (Ruby) that is taken, if it is
-- still the same permit since the same time with the same expiry, and wakes one
-- waiter as the library does: the permit goes back to the list that waiters pop.
--
-- KEYS:    1 taken permits · 2 exec record
-- ARGV:    1 request id · 2 PEXPIRETIME · 3 life of the exec record in ms
--          4 list of free permits · 5 key that says the semaphore is there · 6 permit · 7 time taken
-- Returns: {outcome, woken, recorded}, see opening.lua. A blocked client is not
--          counted: a list does not show who took its element.

return carry_out{kind = 'hash', same = function() return same_fields(6) end, wake = function()
  -- A permit must not be in the list twice: that would let in one too many.
  for _, permit in ipairs(redis.call('LRANGE', ARGV[4], 0, -1)) do
    if permit == ARGV[6] then return 0 end
  end
  -- So the push comes when all else has been shown to be allowed.
  local lasts = redis.call('PTTL', ARGV[5])
  if lasts > 0 then redis.call('PEXPIRE', ARGV[4], lasts) end
  record(RELEASED, 0)
  local why = failed(redis.pcall('LPUSH', ARGV[4], ARGV[6]))
  if why then fail(why) end
  if lasts > 0 then redis.call('PEXPIRE', ARGV[4], lasts) end -- as long as the semaphore itself
  return 0
end}
