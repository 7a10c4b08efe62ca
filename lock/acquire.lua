-- Takes a lock, writes its metadata and makes its fence: all of it or nothing. A waiter that cannot have the lock
-- is put into the queue. A repeat of the same request answers as the first one did.
--
-- KEYS:    1 lock · 2 metadata · 3 fence counter of the slot · 4 queue · 5 waiters
-- ARGV:    1 value of the lock · 2 acquisition id · 3 TTL in ms · 4 TTL of the metadata in ms
--          5 metadata: a JSON object without its opening brace, its first member is "id"
--          6 "<arrival> <nonce> <session> <instance>" of a waiter, empty for who does not wait: arrival in µs, as the queue
--            returned it before, or 0; nonce of this attempt, if a release may hand the lock over, else -; - for no session
-- Returns: fence        taken now
--          {2, fence}   taken before, by this very request or for it, and prolonged
--          {0, PTTL, rank, arrival, metadata}  held by another; its metadata, if it has any
--          {3, ms, rank, arrival, ''}          free, but others are before in the queue; try again after ms
--          rank counts from 0, and is -1 for who is not in the queue

local TURN, LIFE = 150, 3000 -- ms: record.Turn, record.WaiterLife
local lock, hold, counter, queue, waiters = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id = ARGV[2]

-- The server's time in µs. From 2001 to 2286 it has sixteen digits, and texts of one length compare as their
-- numbers do.
local now = redis.call('TIME')
local fence = now[1] .. string.rep('0', 6 - #now[2]) .. now[2]

-- Most acquires meet a free lock that left nothing behind. A queue never stands without metadata, so that this
-- cannot overtake one.
local refused = redis.pcall('SET', lock, ARGV[1], 'NX', 'PX', ARGV[3])
local taken, old, failed = refused and refused.ok
if taken then
  old = redis.pcall('SET', counter, fence, 'GET')
  if not old or type(old) == 'string' and #old == 16 and old < fence and not string.find(old, '%D') then
    local reply = redis.pcall('SET', hold, '{"fence":"' .. fence .. '",' .. ARGV[5], 'NX', 'PX', ARGV[4])
    if reply and reply.ok then return fence end
    failed = reply
  end
end

-- Deletes a key, and returns an error. Where DEL is refused, SET still is not.
local function drop(key)
  local reply = redis.pcall('DEL', key)
  if type(reply) ~= 'table' then return nil end
  redis.pcall('SET', key, '', 'PX', 1)
  return reply
end

if taken then
  if not old then redis.pcall('DEL', counter) elseif type(old) == 'string' then redis.pcall('SET', counter, old) end
  local denied = drop(lock)
  if failed or denied then return failed or denied end
end

local us, ms = tonumber(fence), tonumber(string.sub(fence, 1, -4))
local function int(n) return string.format('%.0f', n) end

-- The waiter of this request.
local arrival, nonce, who = string.match(ARGV[6], '^(%d+) (%S+) (%S+ %S+)$')
if ARGV[6] ~= '' and not who then return redis.error_reply('ERR the sixth argument does not describe a waiter') end

-- Removes one from the queue.
local function remove(one)
  redis.pcall('ZREM', queue, one)
  redis.pcall('HDEL', waiters, one)
end

-- Puts this waiter into the queue, or says that it is still alive; returns its rank and arrival. A failure has no
-- effect on the reply: who is not in the queue tries again by itself.
local function enqueue()
  if not who then return -1, 0 end
  local since = tonumber(arrival)
  local rank = since > 0 and redis.pcall('ZRANK', queue, id)
  if type(rank) ~= 'number' then
    if since == 0 then -- two arrivals are never equal, even if the clock was set back
      local last = redis.pcall('ZRANGE', queue, -1, -1, 'WITHSCORES')
      since = math.max(us, (tonumber(last[2]) or 0) + 1)
    end
    -- It keeps its place if the reply to its first attempt was lost.
    if redis.pcall('ZADD', queue, 'NX', since, id) == 0 then since = tonumber(redis.pcall('ZSCORE', queue, id)) or since end
    rank = redis.pcall('ZRANK', queue, id)
  end
  -- With this a release can take the lock for the waiter.
  local text = table.concat({who, int(since), int(ms + LIFE), math.min(TURN, tonumber(ARGV[3])), nonce, ARGV[1], ARGV[5]}, ' ')
  for _, reply in ipairs({
    rank,
    redis.pcall('HSET', waiters, id, text),
    redis.pcall('PEXPIRE', waiters, LIFE + 5000),
    redis.pcall('PEXPIRE', queue, LIFE + 5000),
  }) do
    if type(reply) ~= 'number' then
      remove(id)
      return -1, 0
    end
  end
  return rank, since
end

-- Returns the error of a reply for a key that cannot be read.
local function unreadable(reply, what)
  if type(reply) ~= 'table' or not reply.err then return nil end
  if not string.find(reply.err, 'WRONGTYPE', 1, true) then return reply end
  return redis.error_reply('WRONGTYPE the ' .. what .. ' key holds another type')
end

local value, text = redis.pcall('GET', lock), redis.pcall('GET', hold)
if type(value) == 'table' then return unreadable(value, 'lock') end
if value and value ~= ARGV[1] then
  if string.sub(value, 1, 4) == 'ls1:' then
    return redis.error_reply('FORMAT the lock is held in wire format 1, which this version neither waits for nor overwrites')
  end
  local rank, since = enqueue()
  return {0, redis.call('PTTL', lock), rank, since, type(text) == 'string' and text or ''}
end

-- A script does not roll back, so that everything that can be wrong is looked at before the first write.
if refused and not taken then return refused end
local stored, head = redis.pcall('GET', counter), redis.pcall('ZRANGE', queue, 0, 0)
local wrong = unreadable(text, 'metadata') or unreadable(stored, 'fence') or unreadable(head, 'queue') or
  unreadable(redis.pcall('HLEN', waiters), 'waiters')
if wrong then return wrong end

-- A double counts exactly to 2^53; microseconds since 1970 are below until 2255.
local function whole(digits)
  local n = not digits and 0 or string.match(digits, '^%d+$') and tonumber(digits)
  return n and n < 9007199254740991 and n
end
local floor = whole(stored)
if not floor then return redis.error_reply('FENCE the counter of the slot is not a number that can grow') end

-- What the metadata says of the hold before this one. A quote inside of a JSON string is escaped, so that only a
-- member's name can look like one.
local function member(name)
  return text and (string.match(text, '"' .. name .. '":"?([^",}]*)'))
end
local before, earlier = member('id'), whole(member('fence')) or 0
local offered = tonumber(member('offered'))
if value and before == id then
  if offered or redis.call('PTTL', lock) < tonumber(ARGV[3]) then
    redis.call('PEXPIRE', lock, ARGV[3])
    redis.pcall('SET', hold, '{"fence":"' .. int(earlier) .. '",' .. ARGV[5], 'PX', ARGV[4])
  end
  return {2, int(earlier)}
end
floor = math.max(floor, earlier)

local free, lost = ms, ''
if before and not value then
  free = offered or (tonumber(member('renewed')) or tonumber(member('acquired')) or earlier / 1000) + (tonumber(member('ttl')) or 0)
  local function word(part) return part and part ~= '' and string.gsub(string.sub(part, 1, 128), ' ', '_') or '-' end
  lost = '"lost":"' .. word(before) .. ' ' .. word(member('instance')) .. ' ' .. int(earlier) .. ' ' .. int(free) ..
    (offered and ' offered' or '') .. '",'
elseif not value then
  free = tonumber(member('free')) or ms
end

-- The lock is free. It is the turn of the head of the queue; who is n places behind it may come when n turns have
-- lapsed, and passes those over who had theirs.
local waiting = head[1] ~= nil
if waiting and not value then
  for _ = 1, 256 do
    head = head[1]
    if not head or head == id then break end
    local due = string.match(redis.call('HGET', waiters, head) or '', '^%S+ %S+ %d+ (%d+)')
    if due and tonumber(due) >= ms then break end
    remove(head) -- dead
    head = redis.call('ZRANGE', queue, 0, 0)
  end
  if head and head ~= id then
    local place = redis.call('ZRANK', queue, id) or redis.call('ZCARD', queue)
    local wait = place * TURN - math.max(0, ms - free)
    if wait > 0 then
      local rank, since = enqueue()
      if not text then redis.pcall('SET', hold, '{"free":"' .. int(free) .. '","v":2}', 'PX', ARGV[4]) end
      return {3, math.ceil(wait), rank, since, ''}
    end
    for _, one in ipairs(redis.call('ZRANGE', queue, 0, place - 1)) do remove(one) end
  end
end

local acquired = ''
if floor >= us then
  -- The clock is behind the counter: the fence does not tell the time.
  fence, acquired = int(floor + 1), '"acquired":"' .. ms .. '",'
end

-- The counter goes first: it may stay without a lock, nothing else may.
redis.call('SET', counter, fence)
redis.call('SET', lock, ARGV[1], 'PX', ARGV[3])
local reply = redis.pcall('SET', hold, '{"fence":"' .. fence .. '",' .. acquired .. lost .. ARGV[5], 'PX', ARGV[4])
if reply.err then
  drop(lock)
  drop(hold)
  return reply
end
if waiting then remove(id) end
return fence
