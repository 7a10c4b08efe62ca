package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// churnMain is `churn URL PREFIX HOLDERS`: that many workers take locks of ever
// new names below PREFIX, each for half a second, until the process is ended.
func churnMain() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	options, err := redis.ParseURL(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	client := redis.NewClient(options)
	defer client.Close()
	var workers int
	if _, err := fmt.Sscan(os.Args[3], &workers); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	done := make(chan struct{})
	for w := range workers {
		go func() {
			defer func() { done <- struct{}{} }()
			// Some hold a lock at any time.
			select {
			case <-ctx.Done():
			case <-time.After(time.Duration(w) * 500 * time.Millisecond / time.Duration(workers)):
			}
			for i := 0; ctx.Err() == nil; i++ {
				key := fmt.Sprintf("%s%d", os.Args[2], i*workers+w)
				if client.SetNX(ctx, key, rand.Text(), 30*time.Second).Err() != nil {
					return
				}
				select {
				case <-ctx.Done():
				case <-time.After(500 * time.Millisecond):
				}
				client.Del(context.WithoutCancel(ctx), key)
			}
		}()
	}
	for range workers {
		<-done
	}
}
