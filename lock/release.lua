-- Deletes a lock and its metadata if the lock is still this hold, and wakes who
-- waits for it.
--
-- KEYS:    1 lock · 2 metadata · 3 queue · 4 waiters
-- ARGV:    1 value of the lock · 2 wake channel · 3 "<SPUBLISH or PUBLISH> <wake message> <prefix of the channels of processes>"
-- Returns: 1 released · 0 the lock is gone · -1 the key is not this hold's

local value = redis.pcall('GET', KEYS[1])
if value ~= ARGV[1] then
  if not value then return 0 end
  if type(value) == 'table' and value.err and not string.find(value.err, 'WRONGTYPE', 1, true) then return value end
  return -1
end

redis.call('DEL', KEYS[1], KEYS[2])

-- The lock is free. Nothing below may turn that into an error. Nobody listens
-- who is not recorded.
local queue, waiters = KEYS[3], KEYS[4]
if redis.pcall('EXISTS', queue, waiters) == 0 then return 1 end
local publish, message, processes = string.match(ARGV[3], '^(%S+) (%S+) (.*)$')
local first = redis.pcall('ZRANGE', queue, 0, 7)
if not first.err and first[1] then
  local now = redis.call('TIME')
  local ms = now[1] * 1000 + math.floor(now[2] / 1000)
  local records = redis.pcall('HMGET', waiters, unpack(first))
  if not records.err then
    -- Only into what is there, so that no key without TTL can arise.
    if redis.pcall('EXISTS', waiters) == 1 then redis.pcall('HSET', waiters, ':free', ms) end
    local told, all = 0, true
    for i, who in ipairs(first) do
      local instance, due
      if records[i] then instance, due = string.match(records[i], '^%S+ (%S+) %d+ (%d+)') end
      if due and tonumber(due) >= ms then
        message = message .. ' ' .. who
        -- Head and successor are told where their process listens anyway. On a
        -- Cluster such a message would go to every node.
        if publish == 'PUBLISH' and told < 2 and all then
          local heard = redis.pcall('PUBLISH', processes .. instance, 'turn ' .. who .. ' ' .. told)
          all = type(heard) == 'number' and heard > 0
          told = told + 1
        end
      end
    end
    if told > 0 and all then return 1 end
  end
end
local sent = redis.pcall(publish, ARGV[2], message)
if type(sent) == 'table' and sent.err and publish ~= 'PUBLISH' then
  redis.pcall('PUBLISH', ARGV[2], message)
end
return 1
