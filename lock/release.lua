-- Deletes a lock and its metadata if the lock is still this hold, and wakes who
-- waits for it.
--
-- KEYS:    1 lock · 2 metadata · 3 queue · 4 waiters
-- ARGV:    1 value of the lock · 2 acquisition id · 3 wake channel · 4 SPUBLISH or PUBLISH · 5 wake message
-- Returns: 1 released · 0 the lock is gone · -1 the key is not this hold's

local lock, meta, queue, waiters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

local value = redis.pcall('GET', lock)
if type(value) == 'table' and value.err then
  if string.find(value.err, 'WRONGTYPE', 1, true) then return -1 end
  return value
end
if not value then return 0 end
if value ~= ARGV[1] then return -1 end

if redis.pcall('HGET', meta, 'id') == ARGV[2] then
  redis.call('DEL', lock, meta)
else
  redis.call('DEL', lock)
end

-- The lock is free. Nothing below may turn that into an error. Nobody listens
-- who is not recorded.
if redis.pcall('EXISTS', queue, waiters) == 0 then return 1 end
local message = ARGV[5]
local first = redis.pcall('ZRANGE', queue, 0, 7)
if not first.err and first[1] then
  local now = redis.call('TIME')
  local ms = tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000)
  local records = redis.pcall('HMGET', waiters, unpack(first))
  if not records.err then
    for i, who in ipairs(first) do
      local due = records[i] and tonumber(string.match(records[i], '^%S+ %S+ %d+ (%d+)'))
      if due and due >= ms then message = message .. ' ' .. who end
    end
    -- Only into what is there, so that no key without TTL can arise.
    if redis.pcall('EXISTS', waiters) == 1 then
      redis.pcall('HSET', waiters, ':free', string.format('%.0f', ms))
    end
  end
end
local sent = redis.pcall(ARGV[4], ARGV[3], message)
if type(sent) == 'table' and sent.err and ARGV[4] ~= 'PUBLISH' then
  redis.pcall('PUBLISH', ARGV[3], message)
end
return 1
