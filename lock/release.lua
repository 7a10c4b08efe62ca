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
local now = redis.call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)

-- Those of the first in the queue who live, with their processes.
local function first(last)
  local names = redis.pcall('ZRANGE', queue, 0, last)
  if names.err or not names[1] then return {} end
  local records = redis.pcall('HMGET', waiters, unpack(names))
  if records.err then return {} end
  local alive = {}
  for i, who in ipairs(names) do
    local instance, due
    if records[i] then instance, due = string.match(records[i], '^%S+ (%S+) %d+ (%d+)') end
    if due and tonumber(due) >= ms then alive[#alive + 1] = {who, instance} end
  end
  return alive
end

-- Head and successor are told where their processes listen anyway. On a Cluster
-- such a message would go to every node.
local next = first(publish == 'PUBLISH' and 1 or 7)
if next[1] then
  -- Only into what is there, so that no key without TTL can arise.
  if redis.pcall('EXISTS', waiters) == 1 then redis.pcall('HSET', waiters, ':free', ms) end
  if publish == 'PUBLISH' then
    local all = true
    for i, one in ipairs(next) do
      local heard = one[2] ~= '-' and redis.pcall('PUBLISH', processes .. one[2], 'turn ' .. one[1] .. ' ' .. (i - 1))
      all = all and type(heard) == 'number' and heard > 0
    end
    if all then return 1 end
    next = first(7)
  end
end
for _, one in ipairs(next) do message = message .. ' ' .. one[1] end
local sent = redis.pcall(publish, ARGV[2], message)
if type(sent) == 'table' and sent.err and publish ~= 'PUBLISH' then
  redis.pcall('PUBLISH', ARGV[2], message)
end
return 1
