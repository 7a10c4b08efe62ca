-- Deletes a lock and its metadata if the lock is still this hold, and wakes who
-- waits for it.
--
-- KEYS:    1 lock · 2 metadata
-- ARGV:    1 value of the lock · 2 acquisition id · 3 wake channel · 4 SPUBLISH or PUBLISH · 5 wake message
-- Returns: 1 released · 0 the lock is gone · -1 the key is not this hold's

local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' and value.err then
  if string.find(value.err, 'WRONGTYPE', 1, true) then return -1 end
  return value
end
if not value then return 0 end
if value ~= ARGV[1] then return -1 end

redis.call('DEL', KEYS[1])
-- The lock is free. Nothing below may turn that into an error.
local id = redis.pcall('HGET', KEYS[2], 'id')
if id == ARGV[2] then redis.pcall('DEL', KEYS[2]) end
local sent = redis.pcall(ARGV[4], ARGV[3], ARGV[5])
if type(sent) == 'table' and sent.err and ARGV[4] ~= 'PUBLISH' then
  redis.pcall('PUBLISH', ARGV[3], ARGV[5])
end
return 1
