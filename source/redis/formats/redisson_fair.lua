-- Releases a Redisson fair lock, if its hash still has exactly the same fields
-- and counts and the same expiry. Waiters at the head of the queue whose time is
-- over go, as in every operation of the library, and the first one that is left
-- is woken on its own channel: the library wakes no other, and neither do we.
--
-- KEYS:    1 lock · 2 exec record · 3 queue · 4 deadlines of those in it
-- ARGV:    1 request id · 2 PEXPIRETIME · 3 life of the exec record in ms
--          4 channel of the lock · 5 message · 6 field, 7 count, and so on
-- Returns: {outcome, woken, recorded}, see opening.lua

return carry_out{kind = 'hash', same = function() return same_fields(6) end, wake = function()
  local now = now_ms()
  while true do
    local head = redis.call('LINDEX', KEYS[3], 0)
    if not head then return 0 end
    local deadline = redis.call('ZSCORE', KEYS[4], head)
    if not deadline or tonumber(deadline) > now then return publish(ARGV[4] .. ':' .. head, ARGV[5]) end
    redis.call('LPOP', KEYS[3])
    redis.call('ZREM', KEYS[4], head)
  end
end}
