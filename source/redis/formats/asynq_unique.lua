-- Releases the lock of a unique asynq task, if it is still the same task with the
-- same expiry and that task is over: gone, completed or archived. While the task
-- is still to be done, the lock does what it is there for. Nobody waits for it.
--
-- KEYS:    1 lock · 2 exec record; the task is in its slot by the braces
-- ARGV:    1 request id · 2 PEXPIRETIME · 3 life of the exec record in ms
--          4 value: the task's id · 5 what the key of a task begins with
-- Returns: {outcome, woken, recorded}, see opening.lua; an error if the task is not over

return carry_out{kind = 'string', same = function()
  if not same_value(4) then return false end
  local task = ARGV[5] .. ARGV[4]
  if redis.call('EXISTS', task) == 1 then
    local state = redis.call('HGET', task, 'state')
    if state ~= 'completed' and state ~= 'archived' then
      error('its task is still to be done, and the lock keeps a second one away: delete the task, which frees the lock', 0)
    end
  end
  return true
end}
