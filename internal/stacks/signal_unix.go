//go:build unix

package stacks

import (
	"os"
	"os/signal"
	"syscall"

	"go.uber.org/zap"
)

// OnSignal logs at each SIGUSR1 what the goroutines of this process do, until the
// returned function is called; from then on the signal ends the process again.
func OnSignal(log *zap.Logger) (stop func()) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	ending, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ending:
				return
			case <-asked:
				groups := Now()
				total := 0
				for _, g := range groups {
					total += g.Count
				}
				log.Info(Message, zap.Int("total", total), zap.Any("groups", groups))
			}
		}
	}()
	return func() {
		signal.Stop(asked)
		close(ending)
		<-done
	}
}
