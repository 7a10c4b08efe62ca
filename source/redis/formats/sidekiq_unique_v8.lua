-- Releases a sidekiq-unique-jobs lock (7, 8) that one job holds, if it is still
-- the same job with the same time and the same expiry. Takes from the lists and
-- indexes what the library's own unlock takes, and wakes who waits in BLMOVE by
-- one element that lives five seconds. The :RUN lock of the same digest, or that
-- without :RUN, is another lock and stays.
--
-- KEYS:    1 lock · 2 exec record
-- ARGV:    1 request id · 2 PEXPIRETIME · 3 life of the exec record in ms · 4 digest · 5 job id · 6 its time
-- Returns: {outcome, woken, recorded}, see opening.lua. A blocked client is not
--          counted: a list does not show who took its element.

-- Sidekiq does not run on a Cluster, so these keys are where the lock is.
local digest = ARGV[4]
return carry_out{kind = 'hash', same = function() return same_fields(5) end, wake = function()
  -- One needless wake-up does no harm: what may be refused comes after it.
  redis.call('LPUSH', digest .. ':QUEUED', '1')
  redis.call('PEXPIRE', digest .. ':QUEUED', 5000)
  redis.call('ZREM', 'uniquejobs:expiring_digests', digest)
  redis.call('ZREM', 'uniquejobs:digests', digest)
  redis.call('DEL', digest, digest .. ':PRIMED', digest .. ':INFO')
  return 0
end}
