package agent

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// A loop that stands still makes the agent unhealthy after a minute, and one in a call
// never; either may go on again.
func TestLivenessCountsStandstill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.InfoLevel)
		l := newLiveness(zap.New(core))
		var slow calls
		loops := make([]*loop, 0, 2)
		for _, name := range []string{"first", "second"} {
			one, forget := l.watch(name, &slow)
			defer forget()
			loops = append(loops, one)
		}
		stop := make(chan struct{})
		defer close(stop)
		go func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(livenessEvery):
					loops[0].turn()
				}
			}
		}()
		after := func(d time.Duration) error {
			for range int(d / livenessEvery) {
				<-time.After(livenessEvery)
				l.check()
			}
			return l.healthy()
		}
		end := slow.begin()
		if err := after(time.Hour); err != nil {
			t.Errorf("in a call: %v", err)
		}
		end()
		if err := after(59 * time.Second); err != nil {
			t.Errorf("within a minute after the call: %v", err)
		}
		err := after(2 * time.Second)
		if err == nil || !strings.Contains(err.Error(), "no progress for 1m0s: second;") {
			t.Errorf("a minute later: %v", err)
		}
		after(time.Minute)
		if n := logs.FilterMessage("the agent stands still").Len(); n != 1 || !strings.Contains(logs.All()[0].ContextMap()["stacks"].(string), "goroutine profile") {
			t.Errorf("logged %d times: %+v", n, logs.All())
		}
		loops[1].turn()
		if err := after(time.Second); err != nil {
			t.Errorf("it goes on: %v", err)
		}
	})
}
