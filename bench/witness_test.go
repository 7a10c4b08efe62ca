package bench

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

const (
	witnessTakes = 60 * time.Microsecond // as long as a SCAN of the default budget
	witnessRuns  = 20                    // of the load
	witnessName  = "witness"
)

// witness has the server run, beside the load, a script that only counts and
// touches no memory to speak of, as long as a SCAN of ours: how often that takes
// over slowFrom is what the machine does to any command of its length.
func witness(b *testing.B, srv *testredis.Server, client *redis.Client, requests int) (slow int, took time.Duration) {
	b.Helper()
	ctx := b.Context()
	opt := srv.Options()
	opt.ClientName, opt.PoolSize = witnessName, 1
	own := redis.NewClient(opt)
	defer own.Close() //nolint:errcheck // A benchmark.
	script := redis.NewScript("local x = 0 for i = 1, ARGV[1] do x = x + i end return 1")
	count := func(n int) {
		if err := script.Run(ctx, own, nil, n).Err(); err != nil {
			b.Error(err)
		}
	}
	count(1)
	const first, tries = 10_000, 200
	before := executions(b, client)["evalsha"]
	for range tries {
		count(first)
	}
	each := (executions(b, client)["evalsha"] - before) / tries
	n := int(first * witnessTakes / each)

	if err := client.Do(ctx, "SLOWLOG", "RESET").Err(); err != nil {
		b.Fatal(err)
	}
	before = executions(b, client)["evalsha"]
	over, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-over:
				return
			default:
				count(n)
			}
		}
	}()
	for range witnessRuns {
		apply(b, srv, client, requests)
	}
	close(over)
	<-stopped
	list, err := client.SlowLogGet(ctx, -1).Result()
	if err != nil {
		b.Fatal(err)
	}
	for _, entry := range list {
		if entry.ClientName == witnessName {
			slow++
		}
	}
	return slow, executions(b, client)["evalsha"] - before
}
