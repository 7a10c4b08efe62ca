-- Releases a lock of lock/: lock and metadata go, the fence and the queue stay, and
-- the first two waiters and the process that held the lock are notified.
--
-- KEYS:    1 lock · 2 exec record · 3 metadata · 4 queue · 5 waiters
-- ARGV:    1 request id · 2 PEXPIRETIME · 3 life of the exec record in ms · 4 value · 5 acquisition id
--          6 prefix of the channels of processes · 7 prefix of the shard channels of the lock · 8 lost message
--          9 life of the metadata of a free lock that waiters are in the queue of, in ms
-- Returns: {outcome, woken, recorded}, see opening.lua

-- Metadata counts only if it is of this acquisition; anything else under that
-- name, of whatever type, is not ours to remove.
local text = redis.pcall('GET', KEYS[3])
local ours = type(text) == 'string' and string.match(text, '"id":"([^"]*)"') == ARGV[5]
local instance = ours and string.match(text, '"instance":"([^"]*)"')
local ids = redis.pcall('ZRANGE', KEYS[4], 0, 1)
if ids.err then ids = {} end

return carry_out{kind = 'string', same = function() return same_value(4) end, keys = {},
  strip = function()
    -- Plain PUBLISH: on a Cluster the process may have no channel in this slot.
    if instance and instance ~= '' then redis.call('PUBLISH', ARGV[6] .. instance, ARGV[8]) end
  end,
  wake = function()
    local woken = 0
    for n, id in ipairs(ids) do
      local record = redis.pcall('HGET', KEYS[5], id)
      local process = type(record) == 'string' and string.match(record, '^%S+ (%S+)')
      if process then
        woken = woken + publish(ARGV[6] .. process, 'turn ' .. id .. ' ' .. (n - 1), ARGV[7] .. process)
      end
    end
    return woken
  end,
  after = function()
    if not ours then return end
    -- While waiters are in the queue, metadata stands, so that nobody overtakes them.
    if ids[1] then
      redis.call('SET', KEYS[3], '{"free":"' .. int(now_ms()) .. '","v":2}', 'PX', ARGV[9])
    else
      redis.call('DEL', KEYS[3])
    end
  end}
