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
	)
	c.Long = `A release deletes exactly the hold that was looked at, wakes its waiters, and
leaves an audit trail. What changed since the request is never deleted.

  locksteward release request lock:order:42 --reason 'holder crashed, see INC-7'
  locksteward release show r-…
  locksteward release approve r-… --reason 'pod is gone, checked'

Exit codes: 0 done, 1 not released, 4 refused by policy.`
	return c
}

func releaseRequestCommand(p *program) *cobra.Command {
	var (
		agent  agentFlags
		key    keyFlags
		ask    askFlags
		reason string
		output outputFlag
	)
	c := &cobra.Command{
		Use:   "request KEY --reason REASON",
		Short: "Ask for the release of a lock",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if reason == "" {
				return usagef("--reason is missing, say why in a sentence: it goes into the audit trail")
			}
			client, err := agent.client()
			if err != nil {
				return err
			}
			ref, err := key.resolve(cmd.Context(), client, args[0])
			if err != nil {
				return err
			}
			in := api.CreateRequest{Target: ref.target, DB: ref.db, Key: api.NewKey(ref.key), Reason: reason}
			if err := ask.fill(cmd, &in); err != nil {
				return err
			}
			if ask.dryRun {
				preview, err := client.DryRun(cmd.Context(), in)
				if err != nil {
					return err
				}
				return showPreview(p, output, preview)
			}
			r, err := client.CreateRequest(cmd.Context(), in)
			if err != nil {
				return err
			}
			return showRequest(p, output, r)
		},
	}
	agent.register(c)
	key.register(c)
	ask.register(c)
	output.register(c)
	c.Flags().StringVar(&reason, "reason", "", "why, for the audit trail")
	return c
}

func releaseDecideCommand(p *program, verb, short string) *cobra.Command {
	var (
		agent    agentFlags
		decision api.Decide
		output   outputFlag
	)
	c := &cobra.Command{
		Use:               verb + " ID --reason REASON",
		Short:             short,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if decision.Reason == "" {
				return usagef("--reason is missing, say why in a sentence: it goes into the audit trail")
			}
			client, err := agent.client()
			if err != nil {
				return err
			}
			r, err := decide(cmd.Context(), client, verb, args[0], decision)
			if err != nil {
				return err
			}
			if err := showRequest(p, output, r); err != nil {
				return err
			}
			return outcome(verb, r)
		},
	}
	agent.register(c)
	output.register(c)
	c.Flags().StringVar(&decision.Reason, "reason", "", "why, for the audit trail")
	c.Flags().StringVar(&decision.EvidenceHash, "evidence", "", "hash of the evidence you looked at (default: the request's as it is now)")
	if verb == "approve" {
		c.Flags().BoolVar(&decision.ConfirmNoIdentity, "confirm-no-identity", false,
			"you know that this lock cannot be told from the next one of its name (a constant value without TTL)")
		c.Flags().BoolVar(&decision.ConfirmHolderAlive, "confirm-holder-alive", false,
			"you know that the holder is alive and may still be writing")
	}
	return c
}

// decide sends a decision. Without a hash the evidence is what the request has
// now: evidence never changes after the request, so both are the same unless
// the id is not the one that was looked at.
func decide(ctx context.Context, client *apiclient.Client, verb, id string, d api.Decide) (api.Request, error) {
	if d.EvidenceHash == "" {
		r, err := client.Request(ctx, id)
		if err != nil {
			return api.Request{}, err
		}
		d.EvidenceHash = r.EvidenceHash
	}
	if verb == "deny" {
		return client.Deny(ctx, id, d)
	}
	return client.Approve(ctx, id, d)
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

func releaseListCommand(p *program) *cobra.Command {
	var (
		agent  agentFlags
		filter apiclient.RequestsQuery
		output outputFlag
	)
	c := &cobra.Command{
		Use:   "list",
		Short: "List requests, the newest first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := agent.client()
			if err != nil {
				return err
			}
			list, err := client.Requests(cmd.Context(), filter)
			if err != nil {
				return err
			}
			if output.json() {
				return writeJSON(p.stdout, list)
			}
			if len(list.Requests) == 0 {
				_, err := fmt.Fprintln(p.stdout, "no requests")
				return err
			}
			return writeRequests(p.stdout, list.Requests)
		},
	}
	agent.register(c)
	output.register(c)
	c.Flags().StringVar(&filter.State, "state", "", "only in this state, pending for instance")
	c.Flags().StringVar(&filter.Target, "target", "", "only of this target")
	c.Flags().IntVar(&filter.Limit, "limit", 100, "at most this many")
	return c
}

func releaseShowCommand(p *program) *cobra.Command {
	var (
		agent  agentFlags
		output outputFlag
	)
	c := &cobra.Command{
		Use:               "show ID",
		Short:             "Show one request with its evidence",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := agent.client()
			if err != nil {
				return err
			}
			r, err := client.Request(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return showRequest(p, output, r)
		},
	}
	agent.register(c)
	output.register(c)
	return c
}

func showRequest(p *program, output outputFlag, r api.Request) error {
	if output.json() {
		return writeJSON(p.stdout, r)
	}
	return writeRequest(p.stdout, r)
}
