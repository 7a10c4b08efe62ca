//go:build !linux

package redis

import "time"

// runDelays returns nothing: how long a thread waited for a processor is not known.
func runDelays() map[string]time.Duration { return nil }
