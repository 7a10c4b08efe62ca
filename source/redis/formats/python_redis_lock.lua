-- Releases a python-redis-lock lock, if it is still the same bytes with the same
-- expiry, and wakes one waiter as the library does: by one element in the list
-- that waiters sleep on (BLPOP), which ends after a second.
--
-- KEYS:    1 lock · 2 exec record
-- ARGV:    1 request id · 2 PEXPIRETIME · 3 life of the exec record in ms · 4 value · 5 signal list
-- Returns: {outcome, woken, recorded}, see opening.lua. A blocked client is not
--          counted: a list does not show who took its element.

-- The list is no key of this script: without a tag in its name a Cluster has it
-- on another node, and then it refuses here, as it refuses the library.
return carry_out{kind = 'string', same = function() return same_value(4) end, wake = function()
  redis.call('PEXPIRE', ARGV[5], 1000) -- may be refused, so before the element that needs it
  redis.call('DEL', ARGV[5])
  redis.call('LPUSH', ARGV[5], 1)
  redis.call('PEXPIRE', ARGV[5], 1000)
  return 0
end}
