package scanner_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/lock"
)

// childArg makes the test binary a process that holds a lock.
const childArg = "scanner-test-child"

// child takes the lock args[1] at the server args[0] in the slot args[2], for an
// hour or args[3], says who it is on stdout, and waits to be killed.
func child(args []string) int {
	opt, err := redis.ParseURL(args[0])
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	rdb := redis.NewClient(opt)
	defer rdb.Close()
	c, err := lock.New(rdb, lock.Options{App: "child", Host: "h7", Slot: args[2]})
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	defer c.Close()
	ttl := time.Hour
	if len(args) > 3 {
		if ttl, err = time.ParseDuration(args[3]); err != nil {
			fmt.Println("error", err)
			return 1
		}
	}
	if _, err := c.Acquire(context.Background(), args[1], lock.Lease{TTL: ttl}); err != nil {
		fmt.Println("error", err)
		return 1
	}
	fmt.Println("instance", c.Instance())
	_, _ = os.Stdin.Read(make([]byte, 1)) // until the parent ends
	return 0
}

// startChild runs a child that holds key, for an hour or ttl, and returns it with
// its instance id.
func startChild(t *testing.T, url, key, slot string, ttl ...string) (process *os.Process, id string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{childArg, url, key, slot}, ttl...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	in, err := cmd.StdinPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	id, ok := strings.CutPrefix(strings.TrimSpace(line), "instance ")
	if !ok {
		t.Fatalf("child: %s", line)
	}
	return cmd.Process, id
}
