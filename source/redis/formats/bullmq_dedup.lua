-- Releases a BullMQ deduplication key, if it is still of the same job with the
-- same expiry and that job is over: gone, completed or failed. While the job is
-- still to be done, the key does what it is there for. Nobody waits for it.
--
-- KEYS:    1 lock · 2 exec record; the job is in its slot, as BullMQ needs it
-- ARGV:    1 request id · 2 PEXPIRETIME · 3 life of the exec record in ms
--          4 value: the job's id · 5 what the key of a job begins with
-- Returns: {outcome, woken, recorded}, see opening.lua; an error if the job is not over

return carry_out{kind = 'string', same = function()
  if not same_value(4) then return false end
  local job = ARGV[5] .. ARGV[4]
  if redis.call('EXISTS', job) == 1 and redis.call('HEXISTS', job, 'finishedOn') == 0 then
    error('its job is still to be done, and the key keeps a second one away: remove the job, which frees the key', 0)
  end
  return true
end}
