-- Takes a waiter that gave up out of the queue. If it was its turn, the next ones
-- are told.
--
-- KEYS:    1 lock · 2 queue · 3 waiters
-- ARGV:    1 acquisition id · 2 wake channel · 3 "<SPUBLISH or PUBLISH> <wake message> …"
-- Returns: 1 it was recorded · 0 it was not

local lock, queue, waiters = KEYS[1], KEYS[2], KEYS[3]

local turn = redis.call('ZRANGE', queue, 0, 0)[1] == ARGV[1]
redis.call('ZREM', queue, ARGV[1])
local was = redis.call('HDEL', waiters, ARGV[1])
if turn and redis.call('EXISTS', lock) == 0 then
  local next = redis.call('ZRANGE', queue, 0, 7)
  if next[1] then
    local now = redis.call('TIME')
    if redis.call('EXISTS', waiters) == 1 then
      redis.call('HSET', waiters, ':free', now[1] * 1000 + math.floor(now[2] / 1000))
    end
    local publish, message = string.match(ARGV[3], '^(%S+) (%S+)')
    message = message .. ' ' .. table.concat(next, ' ')
    local sent = redis.pcall(publish, ARGV[2], message)
    if type(sent) == 'table' and sent.err and publish ~= 'PUBLISH' then
      redis.pcall('PUBLISH', ARGV[2], message)
    end
  end
end
return was
