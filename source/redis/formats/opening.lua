-- The common beginning of every script of a forced release. The script of one
-- format follows it and ends in carry_out. Nothing of the lock is touched before
-- all that could fail has been done: a server that refuses one of the commands
-- refuses it while the lock is still there.
--
-- KEYS:    1 lock · 2 exec record · the format's own · where the lock is set aside, if it is
-- ARGV:    1 request id · 2 PEXPIRETIME that must still hold, -1 for none, empty for any
--          3 life of the exec record in ms · the format's own · options as JSON:
--            alive  the holder lives and renews: what a renewal changes is given as an empty text
--            aside  ms that the lock is kept under the last key, for an undo
--            placeholder  what holds the lock's place for placeholder.ms: placeholder.type, .name, .parts
--            lift   true: remove the placeholder, wake the waiters
--            of     the request that this one follows
-- Returns: {outcome, woken, recorded}: 1 released · 0 already gone · -1 changed · -2 this request ran before and did what recorded says

local RELEASED, GONE, CHANGED, REPEATED = 1, 0, -1, -2
local OPTIONS = cjson.decode(ARGV[#ARGV])
local ARGC = #ARGV - 1 -- without OPTIONS
local KEYC = #KEYS -- without where the lock is set aside
if OPTIONS.aside then KEYC = KEYC - 1 end

local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function int(n) return string.format('%.0f', n) end

-- record stores what this request did. Every outcome is stored, not only a
-- release: a request whose reply was lost must not try again and find, say, the
-- same constant value a second time.
local function record(outcome, woken)
  redis.call('PEXPIRE', KEYS[2], ARGV[3]) -- may be refused, so before the write that needs it
  redis.call('HDEL', KEYS[2], 'withdrawn') -- of an older request
  redis.call('HSET', KEYS[2], 'request', ARGV[1], 'outcome', outcome, 'woken', woken, 'at', int(now_ms()))
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
end

-- settle ends the request with the lock as it is.
local function settle(outcome)
  record(outcome, 0)
  return {outcome, 0, outcome}
end

-- fail ends the script before the lock was touched: there is nothing to record.
local function fail(why)
  redis.call('DEL', KEYS[2])
  error(why, 0)
end

-- failed is the error of a protected call, or nil.
local function failed(reply) return type(reply) == 'table' and reply.err or nil end

-- same_expiry is exact where the server has PEXPIRETIME (7.0) and lets us ask.
-- Elsewhere it is computed, and two readings of the clock may differ by 2 ms. A
-- server that was held up between them is asked again; then it is "no".
local function same_expiry()
  if ARGV[2] == '' then return true end
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

-- same_value compares a string with one argument.
local function same_value(i) return redis.call('GET', KEYS[1]) == ARGV[i] end

-- same_fields says that a hash has exactly the fields and values from argument i
-- on. A renewal may change those that are given as an empty text.
local function same_fields(i)
  if redis.call('HLEN', KEYS[1]) * 2 ~= ARGC - i + 1 then return false end
  for n = i, ARGC, 2 do
    local value = redis.call('HGET', KEYS[1], ARGV[n])
    if not value or value ~= ARGV[n + 1] and not (OPTIONS.alive and ARGV[n + 1] == '') then return false end
  end
  return true
end

-- same_members is same_fields for a sorted set, of which a renewal may change
-- the scores.
local function same_members(i)
  if redis.call('ZCARD', KEYS[1]) * 2 ~= ARGC - i + 1 then return false end
  for n = i, ARGC, 2 do
    local score = redis.call('ZSCORE', KEYS[1], ARGV[n])
    if not score then return false end
    if not (OPTIONS.alive and ARGV[n + 1] == '') and tonumber(score) ~= tonumber(ARGV[n + 1]) then return false end
  end
  return true
end

-- publish sends to plain and to sharded subscribers (of another channel, if that is
-- given) and returns how many there were. Before 7.0 there is no SPUBLISH, and on a Cluster a channel may belong
-- to another slot; a missing permission is an error, as waiters would sleep on.
local function publish(channel, message, shard)
  local reached = redis.call('PUBLISH', channel, message)
  local sharded = redis.pcall('SPUBLISH', shard or channel, message)
  if type(sharded) == 'number' then return reached + sharded end
  local why = sharded.err or ''
  if string.find(why, 'NOPERM', 1, true) or string.find(why, "can't", 1, true) or string.find(why, 'permission', 1, true) then
    error(why, 0)
  end
  return reached
end

-- is_placeholder says that the key, of this type, holds the placeholder that we put there.
local function is_placeholder(found)
  local want = OPTIONS.placeholder
  if not want or found ~= want.type then return false end
  if found == 'string' then return redis.call('GET', KEYS[1]) == want.name end
  if found == 'hash' then return redis.call('HGET', KEYS[1], want.name) == want.parts[2] end
  return redis.call('ZSCORE', KEYS[1], want.name) ~= false
end

-- put writes the placeholder under a key that is free; an error is returned.
local function put(key, placeholder)
  local wrote
  if placeholder.type == 'string' then
    return redis.pcall('SET', key, placeholder.name, 'PX', placeholder.ms)
  elseif placeholder.type == 'hash' then
    wrote = redis.pcall('HSET', key, unpack(placeholder.parts))
  else
    local ends, args = int(now_ms() + placeholder.ms), {}
    for _, member in ipairs(placeholder.parts) do
      args[#args + 1] = ends
      args[#args + 1] = member
    end
    wrote = redis.pcall('ZADD', key, unpack(args))
  end
  if not failed(wrote) then redis.call('PEXPIRE', key, placeholder.ms) end
  return wrote
end

-- rehearse tries on keys of our own what remove will do with the lock: what is
-- refused is refused here. It leaves nothing behind.
local function rehearse()
  local aside = KEYS[#KEYS]
  redis.call('HSET', KEYS[2], 'rehearsal', 1)
  local why = failed(redis.pcall('RENAME', KEYS[2], aside))
  if why then fail(why) end
  redis.call('DEL', aside)
  if not OPTIONS.placeholder then return end
  why = failed(put(aside, OPTIONS.placeholder))
  if why then error(why, 0) end
  redis.call('DEL', aside)
end

-- remove removes the lock: for good, or to where an undo finds it, or to make
-- place for the placeholder.
local function remove(keys)
  if not OPTIONS.aside then
    redis.call('DEL', KEYS[1], unpack(keys))
    return
  end
  local aside = KEYS[#KEYS]
  redis.call('RENAME', KEYS[1], aside)
  if OPTIONS.placeholder then put(KEYS[1], OPTIONS.placeholder) end
  if OPTIONS.aside > 0 then
    local left = redis.call('PTTL', aside)
    if left < 0 or left > OPTIONS.aside then redis.call('PEXPIRE', aside, OPTIONS.aside) end
    redis.call('HSET', KEYS[2], 'undo', ARGV[1])
  else
    redis.call('DEL', aside)
  end
  if #keys > 0 then redis.call('DEL', unpack(keys)) end
end

-- carry_out does what was requested, if the lock is as it was read:
--   kind   its type
--   same   says that it is the same hold, its expiry apart
--   keys   what goes with it and is its own, besides the lock
--   strip  removes what else its holder has, and notifies the holder
--   wake   notifies the waiters that the lock is free; returns how many were reached
--   after  what comes with the removal and cannot fail
-- The order is for failure only: others see all of it at once.
local function carry_out(d)
  local was = redis.call('HMGET', KEYS[2], 'request', 'outcome', 'woken', 'undo')
  if was[1] == ARGV[1] then return {REPEATED, tonumber(was[3]) or 0, tonumber(was[2])} end
  local found = redis.call('TYPE', KEYS[1]).ok
  if found == 'none' then return settle(GONE) end
  local lift = OPTIONS.lift and is_placeholder(found)
  if not lift and (OPTIONS.lift or found ~= d.kind or not same_expiry() or not d.same()) then return settle(CHANGED) end

  redis.call('DEL', KEYS[2]) -- an older request's record; shows that DEL is allowed
  if OPTIONS.aside then rehearse() end
  local woken = 0
  if d.strip and not lift then d.strip() end
  if d.wake and (lift or not OPTIONS.placeholder) then woken = d.wake() end
  record(RELEASED, woken)
  if lift then
    -- The lock that made place may still be where it was set aside.
    if was[4] then redis.call('HSET', KEYS[2], 'undo', was[4]) end
    redis.call('DEL', KEYS[1])
    return {RELEASED, woken, RELEASED}
  end
  if d.after then d.after() end
  remove(d.keys or {})
  return {RELEASED, woken, RELEASED}
end
