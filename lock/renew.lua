-- Prolongs a lock if it is still this hold, and writes its metadata anew. Never creates a lock, never shortens a
-- lease.
--
-- KEYS:    1 lock · 2 metadata
-- ARGV:    1 value of the lock · 2 TTL in ms · 3 how long the metadata outlives the lock, in ms · 4 fence of the hold
--          5 number of this renewal, which grows; 0 confirms a lock that was handed over, which is no renewal
--          6 age of the last progress in ms, -1 for none · 7 metadata: a JSON object without its opening brace
-- Returns: 1 renewed · 0 the lock is gone · -1 the key is not this hold's

local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' and not string.find(value.err, 'WRONGTYPE', 1, true) then return value end
if not value then return 0 end
if value ~= ARGV[1] then return -1 end

local left = math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[2]))
redis.call('PEXPIRE', KEYS[1], left)

-- The lock is renewed. What is wrong with the metadata must not undo that.
local text = redis.pcall('GET', KEYS[2])
local before = type(text) == 'string' and text or ''
local seq = tonumber(ARGV[5])
if (tonumber((string.match(before, '"seq":(%d+)'))) or -1) >= seq then
  redis.pcall('PEXPIRE', KEYS[2], left + ARGV[3]) -- a later one came first
  return 1
end
local head = '{"fence":"' .. ARGV[4] .. '",' .. (string.match(before, '"acquired":"%d+",') or '') .. (string.match(before, '"lost":"[^"]*",') or '')
if seq > 0 then
  local now = redis.call('TIME')
  local ms = tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000)
  head = head .. '"renewed":"' .. string.format('%.0f', ms) .. '",'
  if tonumber(ARGV[6]) >= 0 then head = head .. '"progress":"' .. string.format('%.0f', ms - ARGV[6]) .. '",' end
end
redis.pcall('SET', KEYS[2], head .. ARGV[7], 'PX', left + ARGV[3])
return 1
