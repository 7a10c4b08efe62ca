//go:build !unix

package stacks

import "go.uber.org/zap"

// OnSignal does nothing where there is no SIGUSR1.
func OnSignal(*zap.Logger) (stop func()) { return func() {} }
