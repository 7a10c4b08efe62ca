-- Releases a sidekiq-unique-jobs lock (9 alpha) that one job holds, if it is
-- still the same job with the same document and the same expiry. Nobody waits.
--
-- KEYS:    1 lock · 2 exec record
-- ARGV:    1 request id · 2 PEXPIRETIME · 3 life of the exec record in ms · 4 digest · 5 job id · 6 its document
-- Returns: {outcome, woken, recorded}, see opening.lua

return carry_out{kind = 'hash', same = function() return same_fields(5) end,
  strip = function() redis.call('ZREM', 'uniquejobs:digests', ARGV[4]) end}
