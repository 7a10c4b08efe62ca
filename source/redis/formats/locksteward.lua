-- Releases a lock of lock/: lock and metadata go, the fence stays, the next
-- waiter is woken, and the process that held it is notified.
--
-- KEYS:    1 lock · 2 exec record · 3 metadata
-- ARGV:    1 request id · 2 PEXPIRETIME · 3 life of the exec record in ms · 4 value · 5 acquisition id
--          6 wake channel · 7 wake message · 8 prefix of instance channels · 9 lost message
-- Returns: {outcome, woken, recorded}, see opening.lua

-- Metadata counts only if it is of this acquisition; anything else under that
-- name, of whatever type, is not ours to remove.
local keys, instance = {}, false
local meta = redis.pcall('HMGET', KEYS[3], 'id', 'instance')
if meta[1] == ARGV[5] then
  keys[1] = KEYS[3]
  instance = meta[2]
end

return carry_out{kind = 'string', same = function() return same_value(4) end, keys = keys,
  strip = function()
    -- Plain PUBLISH: on a Cluster the process may have no channel in this slot.
    if instance and instance ~= '' then redis.call('PUBLISH', ARGV[8] .. instance, ARGV[9]) end
  end,
  wake = function() return publish(ARGV[6], ARGV[7]) end}
