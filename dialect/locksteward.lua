-- Releases a lock of lock/: lock and metadata go, the fence stays, the next
-- waiter is woken, and the process that held it is told that it lost it.
--
-- KEYS:    1 lock · 2 exec record · 3 metadata
-- ARGV:    1 request id · 2 PEXPIRETIME · 3 life of the exec record in ms · 4 value · 5 acquisition id
--          6 wake channel · 7 wake message · 8 prefix of instance channels · 9 lost message
-- Returns: {outcome, woken, recorded}, see opening.lua

local reply = judge('string')
if reply then return reply end
if redis.call('GET', KEYS[1]) ~= ARGV[4] then return settle(CHANGED) end

-- Metadata counts only if it is of this acquisition; anything else under that
-- name, of whatever type, is not ours to remove.
local keys, instance = {KEYS[1]}, false
local meta = redis.pcall('HMGET', KEYS[3], 'id', 'instance')
if meta[1] == ARGV[5] then
  keys[2] = KEYS[3]
  instance = meta[2]
end

return free(keys, function()
  local woken = tell(ARGV[6], ARGV[7])
  -- Plain PUBLISH: on a Cluster the process may have no channel in this slot.
  if instance and instance ~= '' then redis.call('PUBLISH', ARGV[8] .. instance, ARGV[9]) end
  return woken
end)
