-- Raises the fence of a hold that a majority of independent masters gave, to the
-- highest that one of them minted. Never lowers one.
--
-- KEYS:    1 lock · 2 metadata · 3 fence counter of the slot
-- ARGV:    1 value of the lock · 2 acquisition id · 3 fence
-- Returns: 1 the counter is at least that now · 0 the lock is gone · -1 the key is not this hold's

local lock, meta, counter = KEYS[1], KEYS[2], KEYS[3]

local value = redis.call('GET', lock)
if not value then return 0 end
if value ~= ARGV[1] then return -1 end

local function below(text)
  if not text then return true end
  local n = string.match(text, '^%d+$') and tonumber(text)
  return n and n < tonumber(ARGV[3])
end

local stored = redis.call('GET', counter)
if stored and not string.match(stored, '^%d+$') then
  return redis.error_reply('FENCE the counter of the slot is not a number that can grow')
end
if below(stored) then redis.call('SET', counter, ARGV[3]) end

-- The counter is what the next fence grows from. What is wrong with the metadata
-- must not undo that.
local known = redis.pcall('HMGET', meta, 'id', 'fence')
if not known.err and known[1] == ARGV[2] and below(known[2]) then
  -- The fence that this node minted told when the lock was taken.
  if known[2] then redis.pcall('HSETNX', meta, 'acquired', string.sub(known[2], 1, -4)) end
  redis.pcall('HSET', meta, 'fence', ARGV[3])
end
return 1
