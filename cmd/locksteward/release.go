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
		releaseDecideCommand(p, "approve", "Approve a request; the agent then compares the lock and releases it"),
		releaseDecideCommand(p, "deny", "Deny a request"),
		releaseFollowCommand(p, "undo", "Restore a lock that was just released, with its expiry"),
		releaseFollowCommand(p, "lift", "End a lock-delay or a take-over early"),
		releaseListCommand(p),
		releaseShowCommand(p),
		releasePreviewCommand(p),
		releaseBundleCommand(p),
		releaseBreakGlassCommand(p),
		releasePauseCommand(p),
		releaseResumeCommand(p),
		releaseStatusCommand(p),
	)
	c.Long = `A release deletes exactly the hold that was requested, wakes its waiters, and is
recorded in the audit trail. A lock that changed since the request is not deleted.

  locksteward release request lock:order:42 --reason 'holder crashed, see INC-7'
  locksteward release show r-…
  locksteward release approve r-… --reason 'pod is gone, checked'

Exit codes: 0 done, 1 not released, 4 refused by policy.`
	return c
}

func releaseDecideCommand(p *program, verb, short string) *cobra.Command {
	return decision[api.Request]{
		verb: verb, short: short,
		read: (*apiclient.Client).Request, evidence: func(r api.Request) string { return r.EvidenceHash },
		approve: (*apiclient.Client).Approve, deny: (*apiclient.Client).Deny,
		show:  writeRequest,
		after: func(r api.Request) error { return outcome(verb, r) },
	}.command(p)
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

func releaseFollowCommand(p *program, verb, short string) *cobra.Command {
	var in api.Follow
	return agentCommand[api.Request]{
		use: verb + " ID --reason REASON", short: short, args: cobra.ExactArgs(1),
		reason: &in.Reason,
		ask: func(ctx context.Context, client *apiclient.Client, args []string) (api.Request, error) {
			if verb == "lift" {
				return client.Lift(ctx, args[0], in)
			}
			return client.Undo(ctx, args[0], in)
		},
		show:  writeRequest,
		after: func(r api.Request) error { return outcome(verb, r) },
	}.command(p)
}

func releaseShowCommand(p *program) *cobra.Command {
	return agentCommand[api.Request]{
		use: "show ID", short: "Show one request with its evidence", args: cobra.ExactArgs(1),
		ask: func(ctx context.Context, client *apiclient.Client, args []string) (api.Request, error) {
			return client.Request(ctx, args[0])
		},
		show: writeRequest,
	}.command(p)
}

func releasePreviewCommand(p *program) *cobra.Command {
	return agentCommand[api.Preview]{
		use: "preview ID", short: "Show what approving a request would do, and what changed since", args: cobra.ExactArgs(1),
		ask: func(ctx context.Context, client *apiclient.Client, args []string) (api.Preview, error) {
			return client.Preview(ctx, args[0])
		},
		show: writePreview,
	}.command(p)
}
