package fenced_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/fenced"
)

// exampleRedis stands for the application's own Redis client.
func exampleRedis() (*redis.Client, func()) {
	srv, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr()})
	return rdb, func() {
		_ = rdb.Close()
		srv.Close()
	}
}

func Example() {
	rdb, stop := exampleRedis()
	defer stop()
	client, err := lock.New(rdb, lock.Options{App: "billing"})
	if err != nil {
		panic(err)
	}
	defer client.Close() //nolint:errcheck // An example.

	ctx := context.Background()
	first, err := client.Acquire(ctx, "lock:order:42", lock.Lease{TTL: 30 * time.Second})
	if err != nil {
		panic(err)
	}
	rdb.Del(ctx, "lock:order:42") // its lease runs out while it stands still
	second, err := client.Acquire(ctx, "lock:order:42", lock.Lease{TTL: 30 * time.Second})
	if err != nil {
		panic(err)
	}
	defer second.Release(ctx) //nolint:errcheck // An example.

	fmt.Println(fenced.Set(ctx, rdb, "order:42", second.Fence(), "paid"))

	// The first goes on, and knows nothing.
	err = fenced.Set(ctx, rdb, "order:42", first.Fence(), "cancelled")
	fmt.Println(errors.Is(err, fenced.ErrStale))

	value, fence, err := fenced.Get(ctx, rdb, "order:42")
	fmt.Println(value, fence == second.Fence(), err)
	// Output:
	// <nil>
	// true
	// paid true <nil>
}

func ExampleSet() {
	rdb, stop := exampleRedis()
	defer stop()

	ctx := context.Background()
	for _, fence := range []int64{33, 34, 33} {
		err := fenced.Set(ctx, rdb, "order:42", fence, "written by "+fmt.Sprint(fence))
		fmt.Println(err)
	}
	value, _, err := fenced.Get(ctx, rdb, "order:42")
	fmt.Println(value, err)
	// Output:
	// <nil>
	// <nil>
	// write "order:42": fence 33 is stale, a later holder has written with 34
	// written by 34 <nil>
}
