-- Stores a value unless its key has seen a greater fence.
--
-- KEYS:    1 hash {fence, value}
-- ARGV:    1 fence, a decimal above 0 without leading zeros · 2 value
-- Returns: greatest fence seen; the value is stored if that is ARGV[1]

local key, fence, value = KEYS[1], ARGV[1], ARGV[2]

-- A number of Lua is exact to 2^53 only; decimals of one length sort as text.
local function greater(a, b)
  if #a ~= #b then return #a > #b end
  return a > b
end

local seen = redis.pcall('HGET', key, 'fence')
if type(seen) == 'table' and seen.err then return seen end
if seen then
  if not string.match(seen, '^[1-9]%d*$') then
    return redis.error_reply('FENCE the field fence of the key is not a number')
  end
  if greater(seen, fence) then return seen end
elseif redis.call('EXISTS', key) == 1 then
  return redis.error_reply('FENCE the key is a hash without the field fence')
end

redis.call('HSET', key, 'fence', fence, 'value', value)
return fence
