package transport

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"
)

// pipelineErrors is a hook that gives a pipeline's error to each of its commands if
// none was answered. go-redis takes a refused login for the reply to a command that has
// an error of its own, so that without the hook the commands look as if each was
// answered with its zero value.
type pipelineErrors struct{}

func (pipelineErrors) DialHook(next redis.DialHook) redis.DialHook { return next }

func (pipelineErrors) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (pipelineErrors) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if err != nil && !slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return cmd.Err() != nil }) {
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
		}
		return err
	}
}
