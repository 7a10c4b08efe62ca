package main

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"time"
)

// usage is what client and server have used up to a moment.
type usage struct {
	at             time.Time
	client, server time.Duration
	mallocs, bytes uint64
}

// usage reads all counters; reading is outside of what is timed.
func (b *bed) usage(ctx context.Context) (usage, error) {
	server, err := b.cpu(ctx)
	if err != nil {
		return usage{}, err
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	client, err := clientCPU()
	if err != nil {
		return usage{}, err
	}
	return usage{at: time.Now(), client: client, server: server, mallocs: m.Mallocs, bytes: m.TotalAlloc}, nil
}

// since returns what was used between an earlier moment and u.
func (u usage) since(earlier usage) spent {
	return spent{
		took:    u.at.Sub(earlier.at),
		client:  u.client - earlier.client,
		server:  u.server - earlier.server,
		mallocs: float64(u.mallocs - earlier.mallocs),
		bytes:   float64(u.bytes - earlier.bytes),
	}
}

type spent struct {
	took, client, server time.Duration
	mallocs, bytes       float64
}

// clientCPU returns what this process has used of its cores.
func clientCPU() (time.Duration, error) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0, fmt.Errorf("read own CPU: %w", err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), nil
}
