package main

import (
	"context"
	"time"
)

// held is a lock that is held. The types of the libraries are used as they are
// wherever they fit, so that the seam costs nothing that would be measured.
type held interface {
	Release(ctx context.Context) error
}

// locker is one client of one library: what one process would have. It is safe
// for concurrent use.
type locker interface {
	// Acquire waits for the lock name until ctx ends.
	Acquire(ctx context.Context, name string) (held, error)
	// Key returns the key in Redis that is the lock name.
	Key(name string) string
	// Close gives back the connections; locks are released before.
	Close() error
}

// watched is a locker that tells when it has renewed a lock.
type watched interface {
	watch(renewed func(name string)) (stop func())
}

// target says where and how a locker is opened.
type target struct {
	addr string
	ttl  time.Duration
	pool int // of go-redis; 0: its default
}

// variant is one contestant: a library with its settings.
type variant struct {
	name string
	// about is what a reader must know of the settings.
	about string
	in    sections
	// sends are the commands that its clients send; the server also counts those
	// that their scripts execute.
	sends []string
	open  func(target) (locker, error)
}

// in returns those variants that take part in a section.
func in(s sections) []variant {
	var list []variant
	for _, v := range variants() {
		if v.in&s != 0 {
			list = append(list, v)
		}
	}
	return list
}

// turned returns the list in the order of a round: each round another is first.
func turned[T any](list []T, round int) []T {
	out := make([]T, 0, len(list))
	for i := range list {
		out = append(out, list[(i+round)%len(list)])
	}
	return out
}
