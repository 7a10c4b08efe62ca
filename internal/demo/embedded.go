package demo

import (
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	redisserver "github.com/alicebob/miniredis/v2/server"

	"github.com/locksteward/locksteward/source/redis/connect"
)

// embeddedTick is how often the embedded server's clock moves.
const embeddedTick = 2 * time.Millisecond

// embedded is a Redis inside this process, for machines without one.
type embedded struct {
	mini  *miniredis.Miniredis
	runID string

	stop chan struct{}
	done sync.WaitGroup
}

func startEmbedded(why string) (*server, error) {
	e := &embedded{
		mini:  miniredis.NewMiniRedis(),
		runID: strings.ToLower(rand.Text() + rand.Text())[:40],
		stop:  make(chan struct{}),
	}
	e.mini.SetTime(time.Now())
	e.mini.ClockTTL(true)
	if err := e.mini.StartAddr(anyPort); err != nil {
		return nil, fmt.Errorf("start embedded redis: %w", err)
	}
	e.mini.Server().SetPreHook(e.complete)
	e.done.Go(e.drive)
	return &server{
		connect: connect.Config{URL: "redis://" + e.mini.Addr() + "/0"},
		scene:   ownScene(),
		what:    "an embedded Redis (miniredis) on " + e.mini.Addr(),
		note: why + "; its clock is driven by this program, the live watch is off, and the server's memory, CPU and evictions are not known. " +
			"With redis-server installed the demo runs on the real thing",
		share: ownShare,
		close: e.close,
	}, nil
}

func (e *embedded) close() error {
	close(e.stop)
	e.done.Wait()
	e.mini.Close()
	return nil
}

// drive moves the clock. It stands still within a command, so that a lock's
// PEXPIRETIME is the same whenever it is asked for.
func (e *embedded) drive() {
	tick := time.NewTicker(embeddedTick)
	defer tick.Stop()
	for {
		select {
		case <-e.stop:
			return
		case now := <-tick.C:
			e.mini.SetTime(now)
		}
	}
}

// complete answers what the embedded server does not know, and says whether it
// did.
func (e *embedded) complete(c *redisserver.Peer, command string, args ...string) bool {
	switch {
	case command == "INFO":
		c.WriteBulk(e.info())
		return true
	case command == "MEMORY" && len(args) == 4 && strings.EqualFold(args[2], "samples"):
		e.mini.Server().Dispatch(c, []string{command, args[0], args[1]})
		return true
	default:
		return false
	}
}

// info is what the scanner needs to know of a server: that it has the commands
// of 7.0, is a master and still the same process.
func (e *embedded) info() string {
	lines := []string{
		"# Server", "redis_version:7.0.0", "redis_mode:standalone", "run_id:" + e.runID,
		"# Clients", fmt.Sprintf("connected_clients:%d", e.mini.Server().ClientsLen()),
		"# Persistence", "loading:0",
		"# Replication", "role:master",
		"",
	}
	return strings.Join(lines, "\r\n")
}
