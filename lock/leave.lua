-- Takes a waiter that gave up out of the queue. If it was the first one and the
-- lock is free, the next one is notified.
--
-- KEYS:    1 lock · 2 queue · 3 waiters
-- ARGV:    1 acquisition id · 2 how waiters are notified: SPUBLISH on a Cluster, else PUBLISH
-- Returns: 1 it was in the queue · 0 it was not · 2 it was handed the lock

if ARGV[2] ~= 'PUBLISH' and ARGV[2] ~= 'SPUBLISH' then
  return redis.error_reply("ERR leave.lua: second argument is '" .. tostring(ARGV[2]) .. "', want PUBLISH or SPUBLISH")
end
local lock, queue, waiters = KEYS[1], KEYS[2], KEYS[3]

local first = redis.call('ZRANGE', queue, 0, 0)[1] == ARGV[1]
local was = redis.call('ZREM', queue, ARGV[1])
redis.call('HDEL', waiters, ARGV[1])
local value, mine = redis.pcall('GET', lock), 'ls2:' .. ARGV[1] .. ':'
if type(value) == 'string' and string.sub(value, 1, #mine) == mine then return 2 end
if not first or value then return was end

local next = redis.call('ZRANGE', queue, 0, 0)[1]
local record = next and redis.call('HGET', waiters, next)
local instance = record and string.match(record, '^%S+ (%S+)')
if instance then
  local prefix, tag = string.match(waiters, '^([^{]*)waiter(:{.*)$')
  local channel = ARGV[2] == 'PUBLISH' and prefix .. 'instance:' .. instance or prefix .. 'wake' .. tag .. ':' .. instance
  local sent = redis.pcall(ARGV[2], channel, 'turn ' .. next .. ' 0')
  if type(sent) == 'table' and ARGV[2] == 'SPUBLISH' then redis.pcall('PUBLISH', channel, 'turn ' .. next .. ' 0') end
end
return was
