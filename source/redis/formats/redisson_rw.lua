-- Releases a Redisson read/write lock that one thread holds, for reading, for
-- writing or for both, if its hash still has exactly the same mode, fields and
-- counts and the same expiry. The keys that keep the expiry of its read holds go
-- too, and who waits is woken.
--
-- KEYS:    1 lock · 2 exec record · 3 and more: one key for each read hold
-- ARGV:    1 request id · 2 PEXPIRETIME · 3 life of the exec record in ms
--          4 channel · 5 message · 6 field, 7 value, and so on
-- Returns: {outcome, woken, recorded}, see opening.lua

local keys = {}
for i = 3, KEYC do keys[#keys + 1] = KEYS[i] end
return carry_out{kind = 'hash', same = function() return same_fields(6) end, keys = keys,
  wake = function() return publish(ARGV[4], ARGV[5]) end}
