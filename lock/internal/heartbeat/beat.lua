-- Writes a process's heartbeat with its TTL, both or nothing.
--
-- KEYS:    1 instance
-- ARGV:    1 TTL in ms · 2 start in ms of server time, 0 for "now" · 3… field, value, …
-- Returns: the start in ms of server time, as text

local started = ARGV[2]
if started == '0' then
  local now = redis.call('TIME')
  started = string.format('%.0f', tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000))
end
redis.call('HSET', KEYS[1], 'started', started, unpack(ARGV, 3))
local reply = redis.pcall('PEXPIRE', KEYS[1], ARGV[1])
if type(reply) == 'table' and reply.err then
  local gone = redis.pcall('DEL', KEYS[1])
  if type(gone) == 'table' and gone.err then redis.pcall('SET', KEYS[1], '', 'PX', 1) end
  return reply
end
return started
