// Command locksteward watches distributed locks: it finds them in the stores that keep them,
// judges them, reports what is wrong, and releases dead ones that a person approved.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // zones of cron schedules, on images that have none

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/source/redis/connect"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the default handling is back: a second one kills.
	context.AfterFunc(ctx, stop)
	// Errors say what matters; commands that log have go-redis log there.
	connect.RedirectGoRedisLog(zap.NewNop())
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
