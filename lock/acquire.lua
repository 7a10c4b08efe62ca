-- Takes a lock, writes its metadata and mints its fence: all of it or nothing.
-- Who cannot have it and waits is recorded as a waiter, in the queue if it wants
-- its turn. A repeat of the same request answers as the first one did.
--
-- KEYS:    1 lock · 2 metadata · 3 fence counter of the slot · 4 queue · 5 waiters
-- ARGV:    1 value of the lock · 2 acquisition id · 3 TTL in ms · 4 grace of the metadata in ms
--          5 0: does not wait, 1: waits, 2: waits in the queue · 6 life of the waiter's record in ms
--          7 arrival in µs that it was told before, 0 for none · 8 the waiter's session and instance
--          9 ms that a waiter has to take its turn
--          10… field, value, … of the metadata (without fence, acquired and lost)
-- Returns: {1, fence, acquired ms}   taken now
--          {2, fence, acquired ms}   taken before, by this very request
--          {0, PTTL, rank, arrival, id, instance, app, host, pid, session, class, purpose, fence, acquired}
--                                    held by another; nothing behind arrival is known unless id is not nil
--          {3, ms, rank, arrival}    free, but others are before; worth a look after ms
--          rank counts from 0, and is -1 for who is not in the queue

local lock, meta, counter, queue, waiters = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, mode = ARGV[2], ARGV[5]

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

local function int(n) return string.format('%.0f', n) end

local value = redis.pcall('GET', lock)
local err = failed(value, 'lock')
if err then return err end
local busy = value and value ~= ARGV[1]

local now = redis.call('TIME')
local us = tonumber(now[1]) * 1000000 + tonumber(now[2])
local ms = math.floor(us / 1000)

-- ':' is in no acquisition id: this field says since when the lock is free.
local FREE = ':free'

local function leave(who)
  redis.call('ZREM', queue, who)
  redis.call('HDEL', waiters, who)
end

-- Says how many stand in the queue, and where this one does, after those at its
-- head who have not been heard of for too long have been taken out.
local function standing()
  err = failed(redis.pcall('ZCARD', queue), 'queue') or failed(redis.pcall('HLEN', waiters), 'waiters')
  if err then return 0, nil end
  for _ = 1, 256 do
    local head = redis.call('ZRANGE', queue, 0, 0)[1]
    if not head or head == id then break end
    local record = redis.call('HGET', waiters, head)
    local due = record and tonumber(string.match(record, '^%S+ %S+ %d+ (%d+)'))
    if due and due >= ms then break end
    leave(head)
  end
  return redis.call('ZCARD', queue), redis.call('ZRANK', queue, id) or nil
end

-- Records this waiter. What fails here has no say in the answer: who is not
-- recorded is not woken, and looks again by itself.
local function record(rank)
  local since = tonumber(ARGV[7])
  if mode == '2' and not rank then
    -- Who was passed over because it came late has its old place back. Two
    -- arrivals are never equal.
    if since == 0 then
      since = us
      local last = redis.pcall('ZRANGE', queue, -1, -1, 'WITHSCORES')
      if not last.err and last[2] and tonumber(last[2]) >= since then since = tonumber(last[2]) + 1 end
    end
    if type(redis.pcall('ZADD', queue, int(since), id)) == 'number' then
      rank = redis.call('ZRANK', queue, id)
    end
  end
  if since == 0 then since = us end
  redis.pcall('HSET', waiters, id, ARGV[8] .. ' ' .. int(since) .. ' ' .. int(ms + tonumber(ARGV[6])))
  local life = tonumber(ARGV[6]) + 5000
  if redis.call('PTTL', waiters) < life then redis.pcall('PEXPIRE', waiters, int(life)) end
  if rank and redis.call('PTTL', queue) < life then redis.pcall('PEXPIRE', queue, int(life)) end
  return rank, since
end

local many, rank = 0, nil
local crowd = redis.call('EXISTS', queue, waiters) > 0
if crowd then
  many, rank = standing()
  if err then return err end
end

if busy then
  local pttl = redis.call('PTTL', lock)
  local since = 0
  if crowd then redis.call('HDEL', waiters, FREE) end
  if mode ~= '0' then rank, since = record(rank) end
  local holder = string.match(value, '^ls1:([^:]+):')
  if not holder then return {0, pttl, rank or -1, since} end
  local m = redis.pcall('HMGET', meta, 'id', 'instance', 'app', 'host', 'pid', 'session', 'class', 'purpose', 'fence', 'acquired')
  if m.err or m[1] ~= holder then return {0, pttl, rank or -1, since} end
  -- Only where the metadata exists, so that no key without TTL can arise; and
  -- whether it can be counted has no say in the answer.
  redis.pcall('HINCRBY', meta, 'contended', 1)
  return {0, pttl, rank or -1, since, m[1], m[2], m[3], m[4], m[5], m[6], m[7], m[8], m[9], m[10]}
end

local old = redis.pcall('HMGET', meta, 'id', 'instance', 'fence', 'acquired')
err = failed(old, 'metadata')
if err then return err end
if value and old[1] == id and old[3] and old[4] then
  return {2, tonumber(old[3]), tonumber(old[4])}
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

-- The lock is free. It is the turn of the head of the queue; who is n places
-- behind it may come when n turns have lapsed, and passes those over who had
-- theirs.
if many > 0 and rank ~= 0 and not value then
  local turn = tonumber(ARGV[9])
  local text = redis.call('HGET', waiters, FREE)
  local free = text and tonumber(text)
  if not free then
    -- Nobody released it. The metadata outlives a lease by its grace.
    free = ms
    local left = redis.call('PTTL', meta)
    if left >= 0 then free = ms - math.max(0, tonumber(ARGV[4]) - left) end
    -- Only into what is there, so that no key without TTL can arise.
    if redis.call('EXISTS', waiters) == 1 then redis.call('HSET', waiters, FREE, int(free)) end
  end
  local waited = ms - free
  local place = rank or many
  if place * turn > waited then
    local since = 0
    if mode ~= '0' then rank, since = record(rank) end
    return {3, place * turn - waited, rank or -1, since}
  end
  for _, who in ipairs(redis.call('ZRANGE', queue, 0, place - 1)) do leave(who) end
end
floor = math.max(floor, whole(old[3]) or 0)
local fence = math.max(floor + 1, us)

-- Metadata without its lock is a hold that ended without a release.
local lost
if old[1] and not value then
  local left = redis.call('PTTL', meta)
  local deadline = 0
  if left >= 0 then deadline = math.max(0, ms + left - tonumber(ARGV[4])) end
  local function word(text)
    if not text or text == '' then return '-' end
    return (string.gsub(string.sub(text, 1, 128), ' ', '_'))
  end
  lost = word(old[1]) .. ' ' .. word(old[2]) .. ' ' .. int(whole(old[3]) or 0) .. ' ' .. int(deadline)
end

-- The counter goes first: it may stay without a lock, nothing else may.
redis.call('SET', counter, int(fence))
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
err = must('HSET', meta, 'fence', int(fence), 'acquired', int(ms), unpack(ARGV, 10))
if err then return err end
if lost then
  err = must('HSET', meta, 'lost', lost)
  if err then return err end
end
err = must('PEXPIRE', meta, int(tonumber(ARGV[3]) + tonumber(ARGV[4])))
if err then return err end

-- It has its turn: nobody needs to know any more that it waited.
if crowd then
  redis.pcall('ZREM', queue, id)
  redis.pcall('HDEL', waiters, id, FREE)
end
return {1, fence, ms}
