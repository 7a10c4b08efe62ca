-- Raises the fence of a hold that a majority of independent masters gave, to the
-- highest that one of them made. Never lowers one.
--
-- KEYS:    1 lock · 2 metadata · 3 fence counter of the slot
-- ARGV:    1 value of the lock · 2 acquisition id · 3 fence
-- Returns: 1 the counter is at least that now · 0 the lock is gone · -1 the key is not this hold's

local lock, hold, counter = KEYS[1], KEYS[2], KEYS[3]

local value = redis.call('GET', lock)
if not value then return 0 end
if value ~= ARGV[1] then return -1 end

local stored = redis.call('GET', counter)
if stored and not string.match(stored, '^%d+$') then
  return redis.error_reply('FENCE the counter of the slot is not a number that can grow')
end
if (tonumber(stored) or 0) < tonumber(ARGV[3]) then redis.call('SET', counter, ARGV[3]) end

-- The counter is what the next fence grows from. What is wrong with the metadata
-- must not undo that.
local text = redis.pcall('GET', hold)
if type(text) ~= 'string' or string.match(text, '"id":"([^"]*)"') ~= ARGV[2] then return 1 end
local known, rest = string.match(text, '^{"fence":"(%d+)",(.*)$')
if known and tonumber(known) < tonumber(ARGV[3]) then
  -- The fence of this node says when the lock was taken.
  local acquired = string.find(rest, '"acquired":"', 1, true) and '' or '"acquired":"' .. string.sub(known, 1, -4) .. '",'
  redis.pcall('SET', hold, '{"fence":"' .. ARGV[3] .. '",' .. acquired .. rest, 'KEEPTTL')
end
return 1
