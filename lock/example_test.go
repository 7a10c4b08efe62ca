package lock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/lock"
)

// exampleClient stands for the application's own Redis client.
func exampleClient() (*redis.Client, func()) {
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

func ExampleClient_Acquire() {
	rdb, stop := exampleClient()
	defer stop()
	client, err := lock.New(rdb, lock.Options{App: "billing"})
	if err != nil {
		panic(err)
	}
	defer client.Close() //nolint:errcheck // An example.

	ctx := context.Background()
	h, err := client.Acquire(ctx, "lock:order:42", lock.Lease{
		TTL:     30 * time.Second,
		Expect:  5 * time.Second,
		Class:   "orders",
		Purpose: "charge card",
	})
	if err != nil {
		panic(err)
	}
	defer h.Release(ctx) //nolint:errcheck // An example.

	// Work under h.Context(), and give h.Fence() to what is written to.
	fmt.Println(h.Key(), h.Context().Err(), h.Fence() > 0)
	// Output: lock:order:42 <nil> true
}

func ExampleClient_TryAcquire() {
	rdb, stop := exampleClient()
	defer stop()
	client, err := lock.New(rdb, lock.Options{App: "billing", Host: "web-1"})
	if err != nil {
		panic(err)
	}
	defer client.Close() //nolint:errcheck // An example.

	ctx := context.Background()
	h, err := client.TryAcquire(ctx, "nightly", lock.Lease{TTL: time.Minute})
	if err != nil {
		panic(err)
	}
	defer h.Release(ctx) //nolint:errcheck // An example.

	_, err = client.TryAcquire(ctx, "nightly", lock.Lease{TTL: time.Minute})
	if held, ok := errors.AsType[*lock.HeldError](err); ok {
		fmt.Println("held by", held.Holder.App, "on", held.Holder.Host)
	}
	// Output: held by billing on web-1
}

func ExampleClient_Do() {
	rdb, stop := exampleClient()
	defer stop()
	client, err := lock.New(rdb, lock.Options{App: "billing"})
	if err != nil {
		panic(err)
	}
	defer client.Close() //nolint:errcheck // An example.

	err = client.Do(context.Background(), "report", lock.Lease{TTL: time.Minute}, func(ctx context.Context, fence int64) error {
		fmt.Println("alone", ctx.Err(), fence > 0)
		return nil
	})
	fmt.Println(err)
	// Output:
	// alone <nil> true
	// <nil>
}

func ExampleHandle_Release() {
	rdb, stop := exampleClient()
	defer stop()
	client, err := lock.New(rdb, lock.Options{})
	if err != nil {
		panic(err)
	}
	defer client.Close() //nolint:errcheck // An example.
	ctx := context.Background()
	h, err := client.Acquire(ctx, "k", lock.Lease{TTL: time.Minute})
	if err != nil {
		panic(err)
	}
	rdb.Del(ctx, "k") // somebody's hand

	switch err := h.Release(ctx); {
	case err == nil:
		fmt.Println("released")
	case errors.Is(err, lock.ErrLost):
		fmt.Println("it was not ours any more")
	default:
		fmt.Println("unknown; the library goes on trying:", err)
	}
	// Output: it was not ours any more
}
