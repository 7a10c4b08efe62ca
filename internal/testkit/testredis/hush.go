package testredis

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Hush has go-redis log nothing in this process: it reports each connection that a
// test breaks. It is for TestMain.
func Hush() { redis.SetLogger(hush{}) }

type hush struct{}

func (hush) Printf(context.Context, string, ...any) {}
