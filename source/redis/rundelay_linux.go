package redis

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// runDelays returns for how long each thread of this process has been ready to run and waited for a processor so far,
// nothing where the kernel does not say: the second field of schedstat
// (https://docs.kernel.org/scheduler/sched-stats.html).
func runDelays() map[string]time.Duration {
	const dir = "/proc/self/task"
	threads, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	waited := make(map[string]time.Duration, len(threads))
	for _, thread := range threads {
		text, err := os.ReadFile(dir + "/" + thread.Name() + "/schedstat")
		if err != nil {
			continue // it has ended
		}
		if fields := strings.Fields(string(text)); len(fields) > 1 {
			if ns, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
				waited[thread.Name()] = time.Duration(ns)
			}
		}
	}
	return waited
}
