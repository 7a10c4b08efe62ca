-- Deletes a lock and its metadata if the lock is still this hold, and hands it to
-- the head of the queue, or wakes who waits for it.
--
-- KEYS:    1 lock · 2 metadata · 3 queue · 4 waiters · of a fair hold: 5 fence counter of the slot · 6 grants
-- ARGV:    1 value of the lock · 2 how its wake channel is told: SPUBLISH or PUBLISH
-- Returns: 1 released · 0 the lock is gone · -1 the key is not this hold's

-- It is run as a command below, where errors are ignored.
if ARGV[2] ~= 'PUBLISH' and ARGV[2] ~= 'SPUBLISH' then
  return redis.error_reply("ERR release.lua: second argument is '" .. tostring(ARGV[2]) .. "', want PUBLISH or SPUBLISH")
end

local value = redis.pcall('GET', KEYS[1])
if value ~= ARGV[1] then
  if not value then return 0 end
  if type(value) == 'table' and value.err and not string.find(value.err, 'WRONGTYPE', 1, true) then return value end
  return -1
end

redis.call('DEL', KEYS[1], KEYS[2])

-- The lock is free. Nothing below may turn that into an error. Nobody listens
-- who is not recorded.
local lock, meta, queue, waiters, counter, grants = unpack(KEYS)
if redis.pcall('EXISTS', queue, waiters) == 0 then return 1 end
-- The channels are not sent with each release, since most need none: all names of a
-- lock begin alike, and no brace is in what they begin with.
local publish, message = ARGV[2], 'free'
local prefix, tag = string.match(waiters, '^([^{]*)waiter(:.*)$')
local channel, processes = prefix .. 'wake' .. tag, prefix .. 'instance:'
local now, ms

local function tick()
  now = redis.call('TIME')
  ms = now[1] * 1000 + math.floor(now[2] / 1000)
end

-- Tells the process of a waiter, and says whether anybody heard it.
local function tell(process, text)
  local heard = process ~= '-' and redis.pcall('PUBLISH', processes .. process, text)
  return type(heard) == 'number' and heard > 0
end

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

-- Gives the lock to the head of the queue for a turn, with all that an acquire
-- writes, and tells it; all of it or nothing. What is other than usual is left to
-- the head's own acquire.
local function grant()
  local names = redis.pcall('ZRANGE', queue, 0, 1)
  local id, successor = names[1], names[2]
  if names.err or not id then return false end
  local left = redis.pcall('HMGET', grants, unpack(names))
  if left.err or not left[1] then return false end
  local instance, due, mark, turn, at = string.match(left[1], '^(%S+) (%d+) (%S+) (%d+) ()')
  local words = {}
  while at and at <= #left[1] do
    local _, colon, size = string.find(left[1], '^(%d+):', at)
    if not colon then return false end
    words[#words + 1] = string.sub(left[1], colon + 1, colon + size)
    at = colon + size + 1
  end
  tick()
  local mine = 'ls1:' .. id .. ':'
  if #words % 2 == 0 or string.sub(words[1], 1, #mine) ~= mine or tonumber(due) < ms then return false end

  local fence = now[2]
  if #fence < 6 then fence = string.rep('0', 6 - #fence) .. fence end
  fence = now[1] .. fence
  local old = redis.pcall('SET', counter, fence, 'GET')
  if type(old) ~= 'string' then return false end
  if #fence ~= 16 or #old ~= 16 or old >= fence or string.find(old, '%D') then
    redis.pcall('SET', counter, old)
    return false
  end
  local reply = redis.pcall('SET', lock, words[1], 'NX', 'PX', turn)
  if not reply or reply.err then return false end
  reply = redis.pcall('HSET', meta, 'fence', fence, 'id', id, 'instance', instance, unpack(words, 2))
  -- No longer than the lock: a turn that nobody took is not a hold that was lost.
  if type(reply) == 'number' then reply = redis.pcall('PEXPIRE', meta, turn) end
  if type(reply) ~= 'number' then
    redis.pcall('DEL', lock, meta)
    return false
  end
  -- Should the head not come, somebody must be awake. The server sends first what
  -- it was given last.
  local process = left[2] and string.match(left[2], '^%S+')
  local awake = not successor or process and tell(process, 'turn ' .. successor .. ' 1')
  if not tell(instance, 'yours ' .. id .. ' ' .. fence .. ' ' .. mark) then
    redis.pcall('DEL', lock, meta)
    return false
  end
  redis.pcall('ZREM', queue, id)
  redis.pcall('HDEL', waiters, id, ':free')
  redis.pcall('HDEL', grants, id)
  -- Unless it is confirmed, the lock is free when the turn is over. Only into what
  -- is there, so that no key without TTL can arise.
  if successor and redis.pcall('EXISTS', waiters) == 1 then redis.pcall('HSET', waiters, ':free', ms + turn) end
  if not awake then
    for i, one in ipairs(first(6)) do
      if tell(one[2], 'turn ' .. one[1] .. ' ' .. i) then break end
    end
  end
  return true
end

if grants and grant() then return 1 end
tick()

-- Head and successor are told where their processes listen anyway. On a Cluster
-- such a message would go to every node.
local next = first(publish == 'PUBLISH' and 1 or 7)
if next[1] then
  -- Only into what is there, so that no key without TTL can arise.
  if redis.pcall('EXISTS', waiters) == 1 then redis.pcall('HSET', waiters, ':free', ms) end
  if publish == 'PUBLISH' then
    local all = true
    for i, one in ipairs(next) do
      all = tell(one[2], 'turn ' .. one[1] .. ' ' .. (i - 1)) and all
    end
    if all then return 1 end
    next = first(7)
  end
end
for _, one in ipairs(next) do message = message .. ' ' .. one[1] end
local sent = redis.pcall(publish, channel, message)
if type(sent) == 'table' and sent.err and publish ~= 'PUBLISH' then
  redis.pcall('PUBLISH', channel, message)
end
return 1
