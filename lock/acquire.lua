-- Takes a lock, writes its metadata and mints its fence: all of it or nothing.
-- A repeat of the same request answers as the first one did.
--
-- KEYS:    1 lock · 2 metadata · 3 fence counter of the slot
-- ARGV:    1 value of the lock · 2 acquisition id · 3 TTL in ms · 4 grace of the metadata in ms
--          5… field, value, … of the metadata (without fence, acquired, renewed and lost)
-- Returns: {1, fence, acquired ms}   taken now
--          {2, fence, acquired ms}   taken before, by this very request
--          {0, PTTL, id, instance, app, host, pid, session, class, purpose, fence, acquired}
--                                    held by another; nothing behind PTTL is known unless id is not nil

local lock, meta, counter = KEYS[1], KEYS[2], KEYS[3]

-- A script does not roll back, so that everything that can be wrong is looked at
-- before the first write.
local function failed(reply, what)
  if type(reply) == 'table' and reply.err then
    if string.find(reply.err, 'WRONGTYPE', 1, true) then
      return redis.error_reply('WRONGTYPE the ' .. what .. ' key holds another type')
    end
    return reply
  end
  return nil
end

local value = redis.pcall('GET', lock)
local err = failed(value, 'lock')
if err then return err end

if value and value ~= ARGV[1] then
  local pttl = redis.call('PTTL', lock)
  local id = string.match(value, '^ls1:([^:]+):')
  if not id then return {0, pttl} end
  local m = redis.pcall('HMGET', meta, 'id', 'instance', 'app', 'host', 'pid', 'session', 'class', 'purpose', 'fence', 'acquired')
  if m.err or m[1] ~= id then return {0, pttl} end
  -- Only where the metadata exists, so that no key without TTL can arise; and
  -- whether it can be counted has no say in the answer.
  redis.pcall('HINCRBY', meta, 'contended', 1)
  return {0, pttl, m[1], m[2], m[3], m[4], m[5], m[6], m[7], m[8], m[9], m[10]}
end

local old = redis.pcall('HMGET', meta, 'id', 'instance', 'fence', 'acquired')
err = failed(old, 'metadata')
if err then return err end
if value and old[1] == ARGV[2] and old[3] and old[4] then
  return {2, old[3], old[4]}
end

local stored = redis.pcall('GET', counter)
err = failed(stored, 'fence')
if err then return err end

-- A double counts exactly to 2^53; microseconds since 1970 are below until 2255.
local function whole(text)
  if not text then return 0 end
  local n = string.match(text, '^%d+$') and tonumber(text)
  if n and n < 9007199254740991 then return n end
  return nil
end
local floor = whole(stored)
if not floor then
  return redis.error_reply('FENCE the counter of the slot is not a number that can grow')
end
floor = math.max(floor, whole(old[3]) or 0)

local now = redis.call('TIME')
local ms = string.format('%.0f', tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000))
local fence = string.format('%.0f', math.max(floor + 1, tonumber(now[1]) * 1000000 + tonumber(now[2])))

-- Metadata without its lock is a hold that ended without a release.
local lost
if old[1] and not value then
  local left = redis.call('PTTL', meta)
  local deadline = '0'
  if left >= 0 then
    deadline = string.format('%.0f', math.max(0, tonumber(ms) + left - tonumber(ARGV[4])))
  end
  local function word(text)
    if not text or text == '' then return '-' end
    return (string.gsub(string.sub(text, 1, 128), ' ', '_'))
  end
  lost = word(old[1]) .. ' ' .. word(old[2]) .. ' ' .. string.format('%.0f', whole(old[3]) or 0) .. ' ' .. deadline
end

-- The counter goes first: it may stay without a lock, nothing else may.
redis.call('SET', counter, fence)
redis.call('SET', lock, ARGV[1], 'PX', ARGV[3])

-- Where DEL is refused, SET still is not: it got us here.
local function undo(key)
  local reply = redis.pcall('DEL', key)
  if type(reply) == 'table' and reply.err then
    redis.pcall('SET', key, '', 'PX', 1)
  end
end

local function must(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then
    undo(lock)
    undo(meta)
    return reply
  end
  return nil
end

if old[1] then
  err = must('DEL', meta)
  if err then return err end
end
err = must('HSET', meta, 'fence', fence, 'acquired', ms, 'renewed', ms, unpack(ARGV, 5))
if err then return err end
if lost then
  err = must('HSET', meta, 'lost', lost)
  if err then return err end
end
err = must('PEXPIRE', meta, string.format('%.0f', tonumber(ARGV[3]) + tonumber(ARGV[4])))
if err then return err end

return {1, fence, ms}
