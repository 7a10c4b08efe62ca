package etcdsource

import "context"

// Before has each request of a releaser call fn first.
func (r *Releaser) Before(fn func(ctx context.Context) error) { r.before = fn }
