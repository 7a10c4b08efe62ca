-- Takes a lock, writes its metadata and mints its fence: all of it or nothing.
-- Who cannot have it and waits is recorded as a waiter, in the queue if it wants
-- its turn. A repeat of the same request answers as the first one did.
--
-- KEYS:    1 lock · 2 metadata · 3 fence counter of the slot · 4 queue · 5 waiters · of who leaves a mark: 6 grants
-- ARGV:    1 value of the lock · 2 acquisition id · 3 TTL in ms · 4 TTL of the metadata in ms
--          5 "<mode> <life> <arrival> <turn> <mark> <session> <instance>" of the waiter: mode 0 does not wait, 1 waits,
--            2 waits in the queue; life of its record in ms; arrival in µs that it was told before, 0 for none;
--            ms that it has to take its turn; mark of this attempt, if a release may hand it the lock, else -
--          6 instance · 7 holder (JSON) · 8… field, value, … : what else belongs into the metadata
-- Returns: fence        taken now
--          {2, fence}   taken before, by this very request or for it, and prolonged
--          {0, PTTL, rank, arrival, field, value, …}  held by another; its metadata, if it has any
--          {3, ms, rank, arrival}    free, but others are before; worth a look after ms
--          rank counts from 0, and is -1 for who is not in the queue

local lock, meta, counter, queue, waiters, grants = unpack(KEYS)
local id = ARGV[2]

-- The server's time in µs; from 2001 to 2286 that has sixteen digits, and texts
-- of one length compare as their numbers do.
local now = redis.call('TIME')
local fence = now[2]
if #fence < 6 then fence = string.rep('0', 6 - #fence) .. fence end
fence = now[1] .. fence

-- What most acquires meet is a free lock that nobody waits for and that left
-- nothing behind. That way has as few commands, functions and numbers as it can:
-- all are dear in a script. What it finds to be otherwise is taken back, and left
-- to the long way.
local spoilt
local companions = redis.call('EXISTS', meta, queue, waiters)
if #fence == 16 and companions == 0 then
  local reply = redis.pcall('SET', lock, ARGV[1], 'NX', 'PX', ARGV[3])
  if reply then
    if reply.err then return reply end
    spoilt = {}
    local old = redis.pcall('SET', counter, fence, 'GET')
    if not old or type(old) == 'string' and #old == 16 and old < fence and not string.find(old, '%D') then
      -- `acquired` is left out where it is what the fence says.
      reply = redis.pcall('HSET', meta, 'fence', fence, 'id', id, 'instance', ARGV[6], 'holder', ARGV[7], unpack(ARGV, 8))
      if type(reply) == 'number' then reply = redis.pcall('PEXPIRE', meta, ARGV[4]) end
      if type(reply) == 'number' then return fence end
      spoilt = reply
    elseif type(old) == 'string' then
      redis.call('SET', counter, old)
    end
  end
end

-- Takes the lock and its metadata back, and says what kept it from that. Where
-- DEL is refused, SET still is not: it got us here.
local function undo()
  local denied
  for _, key in ipairs({lock, meta}) do
    local undone = redis.pcall('DEL', key)
    if type(undone) == 'table' and undone.err then
      denied = undone
      redis.pcall('SET', key, '', 'PX', 1)
    end
  end
  return denied
end
if spoilt then
  local denied = undo()
  if spoilt.err then return spoilt end
  if denied then return denied end
end

-- A script does not roll back, so that everything that can be wrong is looked at
-- before the first write.
local value = redis.pcall('GET', lock)
local stored = redis.pcall('GET', counter)
local before, crowd = false, false
if companions > 0 then
  before = redis.pcall('HGET', meta, 'id')
  crowd = redis.call('EXISTS', queue, waiters) > 0
end
local busy = value and value ~= ARGV[1]
local bad, what = value, 'lock'
if type(bad) ~= 'table' then bad, what = stored, 'fence' end
-- Metadata that cannot be read keeps nobody from being told who has the lock.
if type(bad) ~= 'table' and not busy then bad, what = before, 'metadata' end
if type(bad) == 'table' then
  if string.find(bad.err, 'WRONGTYPE', 1, true) then
    return redis.error_reply('WRONGTYPE the ' .. what .. ' key holds another type')
  end
  return bad
end

-- A number as an argument of a command has all its digits (%.17g), one that is
-- joined to a text loses those above 10^14.
local us, ms = tonumber(fence), tonumber(string.sub(fence, 1, -4))
local function int(n) return string.format('%.0f', n) end

-- Needed by those who wait, and by those who meet them.
local many, rank = 0, nil
local FREE, leave, record, turn
if busy or crowd then
  -- ':' is in no acquisition id: this field says since when the lock is free.
  FREE = ':free'
  local mode, life, arrival, mark, who
  mode, life, arrival, turn, mark, who = string.match(ARGV[5], '^(%d) (%d+) (%d+) (%d+) (%S+) (.*)$')
  if not mode then return redis.error_reply('ERR the fifth argument does not describe a waiter') end
  life, arrival, turn = tonumber(life), tonumber(arrival), tonumber(turn)

  function leave(one)
    redis.call('ZREM', queue, one)
    redis.call('HDEL', waiters, one)
    if grants then redis.pcall('HDEL', grants, one) end
  end

  -- Records this waiter. What fails here has no say in the answer: who is not
  -- recorded is not woken, and looks again by itself.
  function record()
    if mode == '0' then return 0 end
    local since = arrival
    if mode == '2' and not rank then
      -- Who was passed over because it came late has its old place back. Two
      -- arrivals are never equal.
      if since == 0 then
        since = us
        local last = redis.pcall('ZRANGE', queue, -1, -1, 'WITHSCORES')
        if not last.err and last[2] and tonumber(last[2]) >= since then since = tonumber(last[2]) + 1 end
      end
      if type(redis.pcall('ZADD', queue, since, id)) == 'number' then
        rank = redis.call('ZRANK', queue, id)
      end
    end
    if since == 0 then since = us end
    redis.pcall('HSET', waiters, id, who .. ' ' .. int(since) .. ' ' .. int(ms + life))
    local rest = life + 5000
    if redis.call('PTTL', waiters) < rest then redis.pcall('PEXPIRE', waiters, rest) end
    if rank and redis.call('PTTL', queue) < rest then redis.pcall('PEXPIRE', queue, rest) end
    if rank and grants and mark ~= '-' then
      -- With this a release can take the lock for it.
      local text = (ARGV[6] == '' and '-' or ARGV[6]) .. ' ' .. int(ms + life) .. ' ' .. mark .. ' ' .. int(turn) .. ' '
      for _, word in ipairs({ARGV[1], 'holder', ARGV[7], unpack(ARGV, 8)}) do text = text .. #word .. ':' .. word end
      local left = redis.pcall('HSET', grants, id, text)
      if type(left) == 'number' then redis.pcall('PEXPIRE', grants, rest) end
    end
    return since
  end
end

if crowd then
  local head = redis.pcall('ZRANGE', queue, 0, 0)
  local size = redis.pcall('HLEN', waiters)
  local wrong = head.err and head or type(size) == 'table' and size
  if wrong then
    if not string.find(wrong.err, 'WRONGTYPE', 1, true) then return wrong end
    return redis.error_reply('WRONGTYPE the ' .. (head.err and 'queue' or 'waiters') .. ' key holds another type')
  end
  head = head[1]
  -- Those at the head who have not been heard of for too long are taken out.
  for _ = 1, 256 do
    if not head or head == id then break end
    local text = redis.call('HGET', waiters, head)
    local due = text and tonumber(string.match(text, '^%S+ %S+ %d+ (%d+)'))
    if due and due >= ms then break end
    leave(head)
    head = redis.call('ZRANGE', queue, 0, 0)[1]
  end
  if head == id then
    many, rank = 1, 0
  elseif head then
    many = redis.call('ZCARD', queue)
    rank = redis.call('ZRANK', queue, id) or nil
  end
end

if busy then
  local pttl = redis.call('PTTL', lock)
  -- What is held for a turn may be free again when that is over.
  if crowd and (pttl < 0 or pttl > turn) then redis.call('HDEL', waiters, FREE) end
  local since = record()
  local reply = {0, pttl, rank or -1, since}
  local holder = string.match(value, '^ls1:([^:]+):')
  if not holder or before ~= holder then return reply end
  local all = redis.pcall('HGETALL', meta)
  if all.err then return reply end
  for _, text in ipairs(all) do reply[#reply + 1] = text end
  -- Only where the metadata exists, so that no key without TTL can arise; and
  -- whether it can be counted has no say in the answer.
  redis.pcall('HINCRBY', meta, 'contended', 1)
  return reply
end

-- Metadata without its lock is a hold that ended without a release.
local fields = {'fence', '', 'id', id, 'instance', ARGV[6], 'holder', ARGV[7], unpack(ARGV, 8)}
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
if before then
  local old = redis.call('HMGET', meta, 'instance', 'fence')
  if value and before == id and old[2] then
    -- A release gives it for a turn only.
    if redis.call('PTTL', lock) < tonumber(ARGV[3]) then
      redis.call('PEXPIRE', lock, ARGV[3])
      redis.pcall('PEXPIRE', meta, ARGV[4])
      if crowd then redis.pcall('HDEL', waiters, FREE) end
    end
    return {2, old[2]}
  end
  local earlier = whole(old[2]) or 0
  floor = math.max(floor, earlier)
  if not value then
    local left = redis.call('PTTL', meta)
    local deadline = 0
    if left >= 0 then deadline = math.max(0, ms + left - (ARGV[4] - ARGV[3])) end
    local function word(text)
      if not text or text == '' then return '-' end
      return (string.gsub(string.sub(text, 1, 128), ' ', '_'))
    end
    fields[#fields + 1] = 'lost'
    fields[#fields + 1] = word(before) .. ' ' .. word(old[1]) .. ' ' .. int(earlier) .. ' ' .. int(deadline)
  end
end
if floor >= us then
  -- The clock is behind the counter: the fence does not tell the time.
  fence = int(floor + 1)
  fields[#fields + 1] = 'acquired'
  fields[#fields + 1] = ms
end
fields[2] = fence

-- The lock is free. It is the turn of the head of the queue; who is n places
-- behind it may come when n turns have lapsed, and passes those over who had
-- theirs.
if many > 0 and rank ~= 0 and not value then
  local text = redis.call('HGET', waiters, FREE)
  local free = text and tonumber(text)
  if not free then
    -- Nobody released it. The metadata outlives a lease by its grace.
    free = ms
    local left = redis.call('PTTL', meta)
    if left >= 0 then free = ms - math.max(0, ARGV[4] - ARGV[3] - left) end
    -- Only into what is there, so that no key without TTL can arise.
    if redis.call('EXISTS', waiters) == 1 then redis.call('HSET', waiters, FREE, free) end
  end
  local waited = ms - free
  local place = rank or many
  if place * turn > waited then
    local since = record()
    return {3, place * turn - waited, rank or -1, since}
  end
  for _, one in ipairs(redis.call('ZRANGE', queue, 0, place - 1)) do leave(one) end
end

-- The counter goes first: it may stay without a lock, nothing else may.
redis.call('SET', counter, fence)
redis.call('SET', lock, ARGV[1], 'PX', ARGV[3])

local reply = before and redis.pcall('DEL', meta)
if type(reply) ~= 'table' then reply = redis.pcall('HSET', meta, unpack(fields)) end
if type(reply) == 'number' then reply = redis.pcall('PEXPIRE', meta, ARGV[4]) end
if type(reply) == 'table' then
  undo()
  return reply
end

-- It has its turn: nobody needs to know any more that it waited.
if crowd then
  redis.pcall('ZREM', queue, id)
  redis.pcall('HDEL', waiters, id, FREE)
  if grants then redis.pcall('HDEL', grants, id) end
end
return fence
