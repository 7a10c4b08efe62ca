-- Prolongs a lock and its metadata if the lock is still this hold. Never creates
-- a key, never shortens a lease.
--
-- KEYS:    1 lock · 2 metadata · 3 waiters, where it confirms
-- ARGV:    1 value of the lock · 2 acquisition id · 3 TTL in ms · 4 grace of the metadata in ms
--          5 renewals that failed since the last one that was told · 6 age of the last progress in ms, -1 for none
--          7 how often the session has it, 0 for as before · 8 anything: a lock that was given for a turn is
--            confirmed, which is no renewal
-- Returns: 1 renewed · 0 the lock is gone · -1 the key is not this hold's

local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' and value.err then
  if string.find(value.err, 'WRONGTYPE', 1, true) then return -1 end
  return value
end
if not value then return 0 end
if value ~= ARGV[1] then return -1 end

local ttl = tonumber(ARGV[3])
local left = redis.call('PTTL', KEYS[1])
if left < ttl then
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  left = ttl
end

-- The lock is renewed. What is wrong with the metadata must not undo that.
local id = redis.pcall('HGET', KEYS[2], 'id')
if id == ARGV[2] and ARGV[8] then
  redis.pcall('PEXPIRE', KEYS[2], left + tonumber(ARGV[4]))
  redis.pcall('HDEL', KEYS[3], ':free')
elseif id == ARGV[2] then
  local now = redis.call('TIME')
  local ms = tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000)
  redis.pcall('HSET', KEYS[2], 'renewed', ms)
  redis.pcall('HINCRBY', KEYS[2], 'renewals', 1)
  if ARGV[5] ~= '0' then redis.pcall('HINCRBY', KEYS[2], 'renew_failures', ARGV[5]) end
  local age = tonumber(ARGV[6])
  if age >= 0 then redis.pcall('HSET', KEYS[2], 'progress', ms - age) end
  if ARGV[7] ~= '0' then redis.pcall('HSET', KEYS[2], 'holds', ARGV[7]) end
  redis.pcall('PEXPIRE', KEYS[2], left + tonumber(ARGV[4]))
end
return 1
