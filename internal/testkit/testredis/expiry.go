package testredis

import (
	"testing"

	"github.com/redis/go-redis/v9"
)

// ExpiryLua is a Lua function expiry(key) that returns PEXPIRETIME, to the
// millisecond also on servers before Redis 7.0, which have no such command: a PTTL
// between two readings of the clock in the same millisecond counts from that one.
const ExpiryLua = `
local function expiry(key)
  local at = redis.pcall('PEXPIRETIME', key)
  if type(at) == 'number' then return at end
  while true do
    local a, left, b = redis.call('TIME'), redis.call('PTTL', key), redis.call('TIME')
    if left < 0 then return left end
    local ms = a[1] * 1000 + math.floor(a[2] / 1000)
    if ms == b[1] * 1000 + math.floor(b[2] / 1000) then return ms + left end
  end
end
`

// ExpiryScript returns what [ExpiryLua] says of KEYS[1].
const ExpiryScript = ExpiryLua + `return expiry(KEYS[1])`

// ExpireAt returns the PEXPIRETIME of a key, on any server: ms since 1970, -1 for
// none, -2 for no key.
func ExpireAt(t testing.TB, c redis.Cmdable, key string) int64 {
	t.Helper()
	at, err := c.Eval(t.Context(), ExpiryScript, []string{key}).Int64()
	if err != nil {
		t.Fatalf("read expiry of %q: %v", key, err)
	}
	return at
}
