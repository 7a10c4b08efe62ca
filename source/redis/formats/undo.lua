-- Puts a lock back that a forced release set aside, with the expiry that it had,
-- unless somebody has it now. The placeholder of that release makes way.
-- Only the key comes back: what the library keeps beside it does not.
--
-- KEYS:    1 lock · 2 exec record · 3 where the lock was set aside
-- ARGV:    1 request id · 2 PEXPIRETIME that the lock had, -1 for none · 3 life of the exec record in ms
--          4 options as JSON: of is the request that is undone, placeholder what it put there
-- Returns: {outcome, woken, recorded}, see opening.lua: 1 put back · 0 it is not there any more · -1 somebody holds the lock

local was = redis.call('HMGET', KEYS[2], 'request', 'outcome', 'woken', 'undo')
if was[1] == ARGV[1] then return {REPEATED, 0, tonumber(was[2])} end
if was[4] ~= OPTIONS.of then return settle(GONE) end -- another act came between
if redis.call('EXISTS', KEYS[3]) == 0 then return settle(GONE) end
local found = redis.call('TYPE', KEYS[1]).ok
if found ~= 'none' and not is_placeholder(found) then return settle(CHANGED) end
record(RELEASED, 0)
-- The expiry is set first: a key that could not be given back its own would stay
-- too long or go too soon.
local set
if tonumber(ARGV[2]) < 0 then
  set = redis.pcall('PERSIST', KEYS[3])
else
  set = redis.pcall('PEXPIREAT', KEYS[3], ARGV[2])
end
local why = failed(set)
if not why then why = failed(redis.pcall('RENAME', KEYS[3], KEYS[1])) end
if why then
  redis.call('HSET', KEYS[2], 'request', was[1] or '', 'outcome', was[2] or CHANGED, 'woken', was[3] or 0)
  error(why, 0)
end
redis.call('HDEL', KEYS[2], 'undo')
return {RELEASED, 0, RELEASED}
