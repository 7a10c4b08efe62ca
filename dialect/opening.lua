-- What every release script begins with. The text of one dialect follows it and
-- ends in settle or free. Nothing of the lock is touched before all that could
-- fail has been done: a server that refuses one of the commands refuses it
-- while the lock still stands.
--
-- KEYS:    1 lock · 2 exec record
-- ARGV:    1 request id · 2 PEXPIRETIME that must still hold, -1 for none · 3 life of the exec record in ms
-- Returns: {outcome, woken, recorded}: 1 released · 0 already gone · -1 changed · -2 this request ran before and did what recorded says

local RELEASED, GONE, CHANGED, REPEATED = 1, 0, -1, -2

local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

-- record keeps what this request did. Every outcome is kept, not only a
-- release: a request whose reply was lost must not try again and find, say, the
-- same constant value a second time.
local function record(outcome, woken)
  redis.call('PEXPIRE', KEYS[2], ARGV[3]) -- may be refused, so before the write that needs it
  redis.call('HSET', KEYS[2], 'request', ARGV[1], 'outcome', outcome, 'woken', woken,
    'at', string.format('%.0f', now_ms()))
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
end

-- settle ends the request with the lock as it is.
local function settle(outcome)
  record(outcome, 0)
  return {outcome, 0, outcome}
end

-- same_expiry is exact where the server tells PEXPIRETIME (7.0) and lets us ask.
-- Elsewhere it is computed, and two readings of the clock may differ by 2 ms. A
-- server that was held up between them is asked again; then it is "no".
local function same_expiry()
  local want = tonumber(ARGV[2])
  local at = redis.pcall('PEXPIRETIME', KEYS[1])
  if type(at) == 'number' then return at == want end
  for _ = 1, 5 do
    local before = now_ms()
    local left = redis.call('PTTL', KEYS[1])
    if left < 0 or want < 0 then return left == want end
    if now_ms() - before <= 1 then return math.abs(before + left - want) <= 2 end
  end
  return false
end

-- judge returns the reply if it is certain before the value is compared.
local function judge(kind)
  local was = redis.call('HMGET', KEYS[2], 'request', 'outcome', 'woken')
  if was[1] == ARGV[1] then return {REPEATED, tonumber(was[3]) or 0, tonumber(was[2])} end
  local found = redis.call('TYPE', KEYS[1]).ok
  if found == 'none' then return settle(GONE) end
  if found ~= kind or not same_expiry() then return settle(CHANGED) end
  return nil
end

-- tell publishes to plain and to sharded subscribers and returns how many there
-- were. Before 7.0 there is no SPUBLISH, and on a Cluster a channel may belong
-- to another slot; a missing permission is an error, as waiters would sleep on.
local function tell(channel, message)
  local reached = redis.call('PUBLISH', channel, message)
  local sharded = redis.pcall('SPUBLISH', channel, message)
  if type(sharded) == 'number' then return reached + sharded end
  local why = sharded.err or ''
  if string.find(why, 'NOPERM', 1, true) or string.find(why, "can't", 1, true) or string.find(why, 'permission', 1, true) then
    error(why, 0)
  end
  return reached
end

-- free removes the keys of the lock and wakes who waits; wake returns how many
-- that were. remove is called at the end, for what is more than deleting keys: it
-- must not fail. The order is for failure only: others see all of it at once.
local function free(keys, wake, remove)
  redis.call('DEL', KEYS[2]) -- an older request's record; shows that DEL is allowed
  local woken = wake()
  record(RELEASED, woken)
  if remove then remove() end
  redis.call('DEL', unpack(keys))
  return {RELEASED, woken, RELEASED}
end
