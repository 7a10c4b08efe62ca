-- Takes a waiter that gave up out of the queue. If it was its turn, the next ones
-- are told.
--
-- KEYS:    1 lock · 2 queue · 3 waiters · of who left a mark: 4 grants
-- ARGV:    1 acquisition id · 2 wake channel · 3 how that is told: SPUBLISH or PUBLISH
-- Returns: 1 it was recorded · 0 it was not · 2 it was, and was handed the lock already

-- It is run as a command below, where errors are ignored.
if ARGV[3] ~= 'PUBLISH' and ARGV[3] ~= 'SPUBLISH' then
  return redis.error_reply("ERR leave.lua: third argument is '" .. tostring(ARGV[3]) .. "', want PUBLISH or SPUBLISH")
end

local lock, queue, waiters, grants = unpack(KEYS)

local turn = redis.call('ZRANGE', queue, 0, 0)[1] == ARGV[1]
redis.call('ZREM', queue, ARGV[1])
local was = redis.call('HDEL', waiters, ARGV[1])
if grants then
  redis.pcall('HDEL', grants, ARGV[1])
  local value, mine = redis.pcall('GET', lock), 'ls1:' .. ARGV[1] .. ':'
  if type(value) == 'string' and string.sub(value, 1, #mine) == mine then return 2 end
end
if turn and redis.call('EXISTS', lock) == 0 then
  local next = redis.call('ZRANGE', queue, 0, 7)
  if next[1] then
    local now = redis.call('TIME')
    if redis.call('EXISTS', waiters) == 1 then
      redis.call('HSET', waiters, ':free', now[1] * 1000 + math.floor(now[2] / 1000))
    end
    local publish, message = ARGV[3], 'free ' .. table.concat(next, ' ')
    local sent = redis.pcall(publish, ARGV[2], message)
    if type(sent) == 'table' and sent.err and publish ~= 'PUBLISH' then
      redis.pcall('PUBLISH', ARGV[2], message)
    end
  end
end
return was
