-- Deletes a lock and its metadata if the lock is still this hold's, or hands the lock to the first waiter of the
-- queue that can be reached, for a turn. A waiter that has given up leaves the queue so, whether it was handed the
-- lock or not.
--
-- KEYS:    1 lock · 2 metadata · 3 fence counter of the slot · 4 queue · 5 waiters
-- ARGV:    1 value of the lock · 2 how waiters are notified: SPUBLISH on a Cluster, else PUBLISH
-- Returns: 1 released · 0 the lock is gone · -1 the key is not this hold's

if ARGV[2] ~= 'PUBLISH' and ARGV[2] ~= 'SPUBLISH' then
  return redis.error_reply("ERR release.lua: second argument is '" .. tostring(ARGV[2]) .. "', want PUBLISH or SPUBLISH")
end
local lock, hold, counter, queue, waiters = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]

local value, ids = redis.pcall('GET', lock), redis.pcall('ZRANGE', queue, 0, 1)
local ours = value == ARGV[1]
if ours and not ids[1] then
  redis.call('DEL', lock, hold)
  return 1
end

local function remove(id)
  redis.pcall('HDEL', waiters, id)
  return redis.pcall('ZREM', queue, id)
end

if not ours then
  if type(value) == 'table' and not string.find(value.err, 'WRONGTYPE', 1, true) then return value end
  local id = string.match(ARGV[1], '^ls2:(.-):') or ''
  local rank = redis.pcall('ZRANK', queue, id)
  if type(rank) == 'number' then
    local left = remove(id)
    if type(left) == 'table' then return left end
  end
  if value then return -1 end
  if rank ~= 0 then return 0 end
  ids = redis.pcall('ZRANGE', queue, 0, 1) -- the turn of the next one
end

-- Waiters are in the queue. Nothing below may turn the release into an error.
local GRACE = 300000 -- ms: record.Grace
local now = redis.call('TIME')
local fence = now[1] .. string.rep('0', 6 - #now[2]) .. now[2]
local ms = tonumber(string.sub(fence, 1, -4))
local function int(n) return string.format('%.0f', n) end

-- The channel on which the process of a waiter listens. All names of a lock begin alike, and no brace is in what
-- they begin with.
local prefix, tag = string.match(waiters, '^([^{]*)waiter(:{.*)$')
local function channel(instance)
  if ARGV[2] == 'PUBLISH' then return prefix .. 'instance:' .. instance end
  return prefix .. 'wake' .. tag .. ':' .. instance
end

-- Returns the parts of a waiter's record; nothing if it is dead.
local function alive(record)
  if not record then return end
  local instance, due, turn, nonce, token, tail = string.match(record, '^%S+ (%S+) %d+ (%d+) (%d+) (%S+) (%S+) (.*)$')
  if due and tonumber(due) >= ms then return instance, turn, nonce, token, tail end
end

-- Notifies a waiter, if it lives, of its place. A Cluster before 7.0 has no SPUBLISH.
local function notify(id, record, before)
  local instance = alive(record)
  if not instance then return end
  local message = 'turn ' .. id .. ' ' .. before
  local sent = redis.pcall(ARGV[2], channel(instance), message)
  if type(sent) == 'table' and ARGV[2] == 'SPUBLISH' then redis.pcall('PUBLISH', channel(instance), message) end
end

-- Makes the fence of the next hold. Where the counter cannot grow, nobody is handed the lock, and the next acquire
-- reports why. A counter that was lost goes on from the fence of the hold that ends.
local acquired = ''
local function mint()
  local old = redis.pcall('SET', counter, fence, 'GET')
  local last = old
  if not old then
    local text = redis.pcall('GET', hold)
    last = type(text) == 'string' and string.match(text, '"fence":"(%d+)"') or '0'
  end
  local n = type(last) == 'string' and string.match(last, '^%d+$') and tonumber(last)
  if n and n < tonumber(fence) then return true end
  if n and n < 9007199254740991 then
    -- The clock is behind the counter: the fence does not tell the time.
    fence, acquired = int(n + 1), '"acquired":"' .. int(ms) .. '",'
    return redis.pcall('SET', counter, fence).ok ~= nil
  end
  if type(old) == 'string' then redis.pcall('SET', counter, old) end
  return false
end

-- Gives the lock to a waiter with all that an acquire writes, and notifies it and the next one, which comes if that
-- one does not. Returns how many processes received that, 0 if none listens, nil if the waiter must come by itself.
local function hand(id, record, successor, following)
  local instance, turn, nonce, token, tail = alive(record)
  if not instance then return 0 end
  if nonce == '-' or string.sub(token, 1, 5 + #id) ~= 'ls2:' .. id .. ':' then return nil end
  -- Whoever receives a hand-off has the lock, and a subscriber of a replica receives what no subscriber here does:
  -- it is published only if one listens here.
  local listeners = redis.pcall('PUBSUB', ARGV[2] == 'PUBLISH' and 'NUMSUB' or 'SHARDNUMSUB', channel(instance))
  if listeners.err then return nil end
  if tonumber(listeners[2]) == 0 then return 0 end
  if not mint() then return nil end
  local metadata = '{"fence":"' .. fence .. '",' .. acquired .. '"offered":"' .. int(ms + turn) .. '",' .. tail
  if redis.pcall('SET', lock, token, 'PX', turn).err or redis.pcall('SET', hold, metadata, 'PX', turn + GRACE).err then
    return nil
  end
  -- The server sends first what it was given last.
  if successor then notify(successor, following, 1) end
  local receivers = redis.pcall(ARGV[2], channel(instance), 'yours ' .. id .. ' ' .. fence .. ' ' .. nonce)
  return type(receivers) == 'number' and receivers or nil
end

local records
for _ = 1, 256 do
  if not ids[1] then break end
  records = redis.pcall('HMGET', waiters, unpack(ids))
  if records.err or not ours then break end
  local receivers = hand(ids[1], records[1], ids[2], records[2])
  if not receivers then break end
  -- One that is dead or cannot be reached is passed over; if it lives, it comes again and has its old place back.
  remove(ids[1])
  if receivers > 0 then return 1 end
  ids = redis.pcall('ZRANGE', queue, 0, 1)
end

-- The lock is free. While waiters are left, metadata stands, so that nobody overtakes them.
if ours then
  redis.call('DEL', lock, hold)
  if ids[1] then redis.pcall('SET', hold, '{"free":"' .. int(ms) .. '","v":2}', 'PX', GRACE) end
end
for n, id in ipairs(ids) do notify(id, records[n], n - 1) end
return ours and 1 or 0
