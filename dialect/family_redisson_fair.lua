-- Releases a Redisson fair lock, if its hash still has exactly the same fields
-- and counts and the same expiry. Waiters at the head of the queue whose time is
-- over go, as in every operation of the library, and the first one that is left
-- is woken on its own channel: the library wakes no other, and neither do we.
--
-- KEYS:    1 lock · 2 exec record · 3 queue · 4 deadlines of those in it
-- ARGV:    1 request id · 2 PEXPIRETIME · 3 life of the exec record in ms
--          4 channel of the lock · 5 message · 6 field, 7 count, and so on
-- Returns: {outcome, woken, recorded}, see opening.lua

local reply = judge('hash')
if reply then return reply end
if redis.call('HLEN', KEYS[1]) * 2 ~= #ARGV - 5 then return settle(CHANGED) end
for i = 6, #ARGV, 2 do
  if redis.call('HGET', KEYS[1], ARGV[i]) ~= ARGV[i + 1] then return settle(CHANGED) end
end
return free({KEYS[1]}, function()
  local now = now_ms()
  while true do
    local head = redis.call('LINDEX', KEYS[3], 0)
    if not head then return 0 end
    local deadline = redis.call('ZSCORE', KEYS[4], head)
    if not deadline or tonumber(deadline) > now then return tell(ARGV[4] .. ':' .. head, ARGV[5]) end
    redis.call('LPOP', KEYS[3])
    redis.call('ZREM', KEYS[4], head)
  end
end)
