package liveness

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// A loop without progress makes the program unhealthy after a minute, a loop in a call
// never; either may make progress again.
func TestLoopWithoutProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.InfoLevel)
		l := New(zap.New(core))
		var slow Calls
		loops := make([]*Loop, 0, 2)
		for _, name := range []string{"first", "second"} {
			loop, remove := l.Add(name, &slow)
			defer remove()
			loops = append(loops, loop)
		}
		stop := make(chan struct{})
		defer close(stop)
		go func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(every):
					loops[0].Progress()
				}
			}
		}()
		after := func(d time.Duration) error {
			for range int(d / every) {
				<-time.After(every)
				l.check()
			}
			return l.Healthy()
		}
		end := slow.Begin()
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
		if n := logs.FilterMessage("loops make no progress").Len(); n != 1 || !strings.Contains(logs.All()[0].ContextMap()["stacks"].(string), "goroutine profile") {
			t.Errorf("logged %d times: %+v", n, logs.All())
		}
		loops[1].Progress()
		if err := after(time.Second); err != nil {
			t.Errorf("it goes on: %v", err)
		}
	})
}
