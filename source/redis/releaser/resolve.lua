-- Finds out what a release request did, by the record that its script left
-- beside the lock. Where there is none, the request is withdrawn in the same
-- step: its script, should the server still receive it, finds the withdrawal
-- under its id and touches nothing. No lock is read or written here.
--
-- KEYS:    exec records of the lock, one for each prefix of companions
-- ARGV:    1 request id · 2 life of a withdrawal in ms
-- Returns: {found, outcome, woken}: found 1 with what the record says, or 0 when the request is withdrawn

for i = 1, #KEYS do
  local was = redis.call('HMGET', KEYS[i], 'request', 'outcome', 'woken', 'withdrawn')
  if was[1] == ARGV[1] and not was[4] then
    return {1, tonumber(was[2]), tonumber(was[3]) or 0}
  end
end
for i = 1, #KEYS do
  -- Over an older request's record, of which "undo" stays: what that request set
  -- aside is still there. "changed" is what the scripts call an act that touched
  -- nothing.
  redis.call('HSET', KEYS[i], 'request', ARGV[1], 'outcome', -1, 'woken', 0, 'withdrawn', 1)
  redis.call('PEXPIRE', KEYS[i], ARGV[2])
end
return {0, -1, 0}
