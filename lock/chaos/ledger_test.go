package chaos_test

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/lockcheck"
)

// ledger is what locks protect: for each of them a store that refuses smaller
// fences and one that takes everything, on a server that nothing happens to.
type ledger struct{ rdb *redis.Client }

var ledgerScript = redis.NewScript(`
-- KEYS:    1 resource
-- ARGV:    1 fence · 2 what is written
-- Returns: {accepted, number or -1, fence stored before}, number without fences
local stored = redis.call('HGET', KEYS[1], 'fence') or '0'
local free = redis.call('HINCRBY', KEYS[1], 'unfenced', 1)
redis.call('HSET', KEYS[1], 'unfenced_by', ARGV[2])
if tonumber(ARGV[1]) < tonumber(stored) then return {0, -1, stored, free} end
redis.call('HSET', KEYS[1], 'fence', ARGV[1], 'fenced_by', ARGV[2])
return {1, redis.call('HINCRBY', KEYS[1], 'fenced', 1), stored, free}
`)

// write writes under hold to both stores and returns how that ended.
func (l *ledger) write(ctx context.Context, hold lockcheck.Hold) (fenced, unfenced lockcheck.Write) {
	w := lockcheck.Write{Lock: hold.Lock, Hold: hold.ID, Client: hold.Client, Fence: hold.Fence, Called: lockcheck.Now()}
	reply, err := ledgerScript.Run(ctx, l.rdb, []string{"resource:" + hold.Lock}, hold.Fence, hold.ID).Slice()
	w.Done, w.Outcome = lockcheck.Now(), lockcheck.Unknown
	if err != nil || len(reply) != 4 {
		return w, w
	}
	fenced, unfenced = w, w
	unfenced.Outcome, unfenced.Seq = lockcheck.Accepted, reply[3].(int64)
	if reply[0].(int64) == 1 {
		fenced.Outcome, fenced.Seq = lockcheck.Accepted, reply[1].(int64)
	} else {
		stored, err := strconv.ParseInt(reply[2].(string), 10, 64)
		if err != nil {
			return w, w
		}
		fenced.Outcome, fenced.Stored = lockcheck.Rejected, stored
	}
	return fenced, unfenced
}
