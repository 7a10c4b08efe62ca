package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/redlock"
)

func ExampleNew() {
	// Independent masters: none replicates another.
	var nodes []*redis.Client
	for range 3 {
		srv, err := miniredis.Run()
		if err != nil {
			panic(err)
		}
		defer srv.Close()
		rdb := redis.NewClient(&redis.Options{Addr: srv.Addr()})
		defer rdb.Close() //nolint:errcheck // An example.
		nodes = append(nodes, rdb)
	}
	client, err := redlock.New(nodes, redlock.Options{
		Options:     lock.Options{App: "billing"},
		NodeTimeout: 200 * time.Millisecond,
	})
	if err != nil {
		panic(err)
	}
	defer client.Close() //nolint:errcheck // An example.

	ctx := context.Background()
	h, err := client.Acquire(ctx, "lock:order:42", lock.Lease{TTL: 30 * time.Second})
	if failed, ok := errors.AsType[*redlock.QuorumError](err); ok {
		for _, n := range failed.Nodes {
			fmt.Println(n.Node, n.Addr, n.Err)
		}
	}
	if err != nil {
		panic(err)
	}
	defer h.Release(ctx) //nolint:errcheck // An example.

	fmt.Println(h.Key(), h.Context().Err(), h.Fence() > 0)
	// Output: lock:order:42 <nil> true
}
