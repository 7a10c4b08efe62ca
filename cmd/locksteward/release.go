package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
)

func releaseCommand(p *program) *cobra.Command {
	c := group("release", "Release a dead lock: one person requests it, another approves",
		releaseRequestCommand(p),
		releaseDecideCommand(p, "approve", "Approve a request or a bundle; the agent then compares each lock and releases it"),
		releaseDecideCommand(p, "deny", "Deny a request or a bundle"),
		releaseUndoCommand(p),
		releaseListCommand(p),
		releaseShowCommand(p),
		releasePauseCommand(p),
		releaseResumeCommand(p),
	)
	c.Long = `A release ends exactly the hold that was requested, and is recorded in the audit trail.
A lock that changed since the request is left as it is.

  locksteward release request lock:order:42 --reason 'holder crashed, see INC-7'
  locksteward release show r-… --preview
  locksteward release approve r-… --reason 'pod is gone, checked'

The locks of a dead host are requested and decided on together, as a bundle. Each is
compared separately: one that changed since is left as it is, the others are released.

  locksteward release request --host app-7 --reason 'node is gone, INC-9'
  locksteward release approve b-… --reason 'node is gone, checked'

One person with the role break-glass can release without an approval, which notifies
everybody: 'locksteward release request KEY --break-glass'.

Exit codes: 0 done, 1 not released, 4 refused by policy.`
	return c
}

func registerConfirmations(c *cobra.Command, noIdentity, holderAlive *bool) {
	c.Flags().BoolVar(noIdentity, "confirm-no-identity", false,
		"confirm that this hold cannot be distinguished from the next one (constant value), or only by its expiry")
	c.Flags().BoolVar(holderAlive, "confirm-holder-alive", false,
		"confirm that the holder is alive and may still be writing")
}

// outcome is the error for an approved request whose lock was not released.
func outcome(verb string, r api.Request) error {
	switch state := locksteward.RequestState(r.State); state {
	case locksteward.RequestChanged, locksteward.RequestFailed, locksteward.RequestUnknown:
		return fmt.Errorf("request %s is %s: %s", r.ID, r.State, r.Outcome)
	case locksteward.RequestExecuting:
		return fmt.Errorf("the outcome of request %s is not known yet, the agent keeps checking; see 'locksteward release show %s'", r.ID, r.ID)
	case locksteward.RequestExpired:
		if verb == "approve" {
			return errors.New("the request had expired; make a new one")
		}
	}
	return nil
}

func releaseUndoCommand(p *program) *cobra.Command {
	var (
		in   api.Follow
		lift bool
	)
	return agentCommand[api.Request]{
		use: "undo ID --reason REASON", short: "Restore a lock that was just released, or end its lock-delay or take-over",
		long: `Undo restores a lock that was just released, with the value and the expiry that it had,
unless somebody holds it by now. It works for release.undo_window (10m) after a release.

A release with a lock-delay, and a take-over, hold the key with a placeholder for a
while. With --lift only that ends, now: the agent deletes the placeholder, if it is
still there, and wakes who waits. It does not restore the lock.`,
		example: `  locksteward release undo r-… --reason 'wrong lock'
  locksteward release undo r-… --lift --reason 'checked, work may go on'`,
		args:   cobra.ExactArgs(1),
		reason: &in.Reason,
		flags: func(c *cobra.Command) {
			c.Flags().BoolVar(&lift, "lift", false, "only end the lock-delay or take-over; do not restore the lock")
		},
		ask: func(ctx context.Context, client *apiclient.Client, args []string) (api.Request, error) {
			if lift {
				return client.Lift(ctx, args[0], in)
			}
			return client.Undo(ctx, args[0], in)
		},
		show:  writeRequest,
		after: func(r api.Request) error { return outcome("undo", r) },
	}.command(p)
}

func releaseShowCommand(p *program) *cobra.Command {
	var preview bool
	return agentCommand[any]{
		use: "show ID", short: "Show a request or a bundle with its evidence", args: cobra.ExactArgs(1),
		flags: func(c *cobra.Command) {
			c.Flags().BoolVar(&preview, "preview", false, "show what approving the request would do, and what changed since")
		},
		ask: func(ctx context.Context, client *apiclient.Client, args []string) (any, error) {
			switch {
			case isBundle(args[0]) && preview:
				return nil, usagef("--preview: write the id of one request of the bundle, such as %s.1", args[0])
			case isBundle(args[0]):
				return client.Bundle(ctx, args[0])
			case preview:
				return client.Preview(ctx, args[0])
			}
			return client.Request(ctx, args[0])
		},
		show: writeRequested,
	}.command(p)
}
