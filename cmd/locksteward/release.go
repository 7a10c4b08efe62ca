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
	c := group("release", "Free a dead lock: one person asks, another approves",
		releaseRequestCommand(p),
		releaseDecideCommand(p, "approve", "Approve a request; the agent then compares and releases"),
		releaseDecideCommand(p, "deny", "Deny a request"),
		releaseFollowCommand(p, "undo", "Put back a lock that was released a moment ago, with the expiry it had"),
		releaseFollowCommand(p, "lift", "End a lock-delay or a take-over before its time"),
		releaseListCommand(p),
		releaseShowCommand(p),
		releasePreviewCommand(p),
		releaseBundleCommand(p),
		releaseBreakGlassCommand(p),
		releaseKillSwitchCommand(p),
		releaseFreezeCommand(p),
	)
	c.Long = `A release deletes exactly the hold that was looked at, wakes its waiters, and
leaves an audit trail. What changed since the request is never deleted.

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
		"you know that this lock cannot be told from the next one of its name (a constant value), or by its expiry alone")
	c.Flags().BoolVar(holderAlive, "confirm-holder-alive", false,
		"you know that the holder is alive and may still be writing")
}

// outcome is the error for an approved request whose lock was not released.
func outcome(verb string, r api.Request) error {
	switch state := locksteward.RequestState(r.State); state {
	case locksteward.RequestChanged, locksteward.RequestFailed, locksteward.RequestUnknown:
		return fmt.Errorf("request %s is %s: %s", r.ID, r.State, r.Outcome)
	case locksteward.RequestExecuting:
		return fmt.Errorf("the outcome of request %s is not known yet, the agent keeps asking; see 'locksteward release show %s'", r.ID, r.ID)
	case locksteward.RequestExpired:
		if verb == "approve" {
			return errors.New("the request had expired; make a new one")
		}
	}
	return nil
}

func releaseFollowCommand(p *program, verb, short string) *cobra.Command {
	var in api.Follow
	return talk[api.Request]{
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
	return talk[api.Request]{
		use: "show ID", short: "Show one request with its evidence", args: cobra.ExactArgs(1),
		ask: func(ctx context.Context, client *apiclient.Client, args []string) (api.Request, error) {
			return client.Request(ctx, args[0])
		},
		show: writeRequest,
	}.command(p)
}

func releasePreviewCommand(p *program) *cobra.Command {
	return talk[api.Preview]{
		use: "preview ID", short: "Show what approving a request would do now, and what changed since it was made", args: cobra.ExactArgs(1),
		ask: func(ctx context.Context, client *apiclient.Client, args []string) (api.Preview, error) {
			return client.Preview(ctx, args[0])
		},
		show: writePreview,
	}.command(p)
}
