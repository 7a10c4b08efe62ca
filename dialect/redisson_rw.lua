-- Releases a Redisson read/write lock that one thread holds, for reading, for
-- writing or for both, if its hash still has exactly the same mode, fields and
-- counts and the same expiry. The keys that keep the expiry of its read holds go
-- too, and who waits is woken.
--
-- KEYS:    1 lock · 2 exec record · 3 and more: one key for each read hold
-- ARGV:    1 request id · 2 PEXPIRETIME · 3 life of the exec record in ms
--          4 channel · 5 message · 6 field, 7 value, and so on
-- Returns: {outcome, woken, recorded}, see opening.lua

local reply = judge('hash')
if reply then return reply end
if redis.call('HLEN', KEYS[1]) * 2 ~= #ARGV - 5 then return settle(CHANGED) end
for i = 6, #ARGV, 2 do
  if redis.call('HGET', KEYS[1], ARGV[i]) ~= ARGV[i + 1] then return settle(CHANGED) end
end
local keys = {KEYS[1]}
for i = 3, #KEYS do keys[#keys + 1] = KEYS[i] end
return free(keys, function() return tell(ARGV[4], ARGV[5]) end)
