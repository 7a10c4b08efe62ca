package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
)

func releaseBundleCommand(p *program) *cobra.Command {
	c := group("bundle", "Release the locks of a dead host with one request and one decision",
		releaseBundleRequestCommand(p),
		releaseBundleShowCommand(p),
		releaseBundleDecideCommand(p, "approve", "Approve all requests of a bundle; the agent compares and releases each lock"),
		releaseBundleDecideCommand(p, "deny", "Deny all requests of a bundle"),
	)
	c.Long = `A bundle is a set of requests for the locks of one dead host, with one decision. Its
list does not change after it was made. Each lock is compared separately: one that
changed since is not deleted, the others are still released.

  locksteward release bundle request --host app-7 --reason 'node is gone, INC-9'
  locksteward release bundle show b-…
  locksteward release bundle approve b-… --reason 'node is gone, checked'`
	return c
}

func releaseBundleRequestCommand(p *program) *cobra.Command {
	var (
		in  api.CreateBundle
		key keyFlags
	)
	return agentCommand[api.Bundle]{
		use: "request [KEY]... --host HOST --reason REASON", short: "Request the release of the locks of a dead host", args: cobra.ArbitraryArgs,
		long: `Request the release of the locks of a dead host. Without a KEY these are the locks
of the target whose holder is on the host and dead by the rules holder/dead and
host/lost.`,
		reason: &in.Reason,
		flags: func(c *cobra.Command) {
			c.Flags().StringVar(&in.Host, "host", "", "the dead host, as named in the holders of its locks")
			c.Flags().StringVar(&key.target, "target", "", "the locks' target (required if the agent watches several)")
			c.Flags().BoolVar(&key.base64, "base64", false, "KEY is base64, for a key that is not valid UTF-8 (key_b64 in JSON)")
		},
		ask: func(ctx context.Context, client *apiclient.Client, args []string) (api.Bundle, error) {
			if in.Host == "" {
				return api.Bundle{}, usagef("--host is missing, write the dead host as its locks' holders name it: see 'locksteward locks list'")
			}
			for _, arg := range args {
				name, err := key.key(arg)
				if err != nil {
					return api.Bundle{}, err
				}
				in.Keys = append(in.Keys, api.NewKey(name))
			}
			var err error
			if in.Target, err = key.oneTarget(ctx, client); err != nil {
				return api.Bundle{}, err
			}
			return client.CreateBundle(ctx, in)
		},
		show: writeBundle,
	}.command(p)
}

func releaseBundleShowCommand(p *program) *cobra.Command {
	return agentCommand[api.Bundle]{
		use: "show ID", short: "Show a bundle with its requests", args: cobra.ExactArgs(1),
		ask: func(ctx context.Context, client *apiclient.Client, args []string) (api.Bundle, error) {
			return client.Bundle(ctx, args[0])
		},
		show: writeBundle,
	}.command(p)
}

func releaseBundleDecideCommand(p *program, verb, short string) *cobra.Command {
	return decision[api.Bundle]{
		verb: verb, short: short,
		read: (*apiclient.Client).Bundle, evidence: func(b api.Bundle) string { return b.EvidenceHash },
		approve: (*apiclient.Client).ApproveBundle, deny: (*apiclient.Client).DenyBundle,
		show: writeBundle,
		after: func(b api.Bundle) error {
			var errs []error
			for _, p := range b.Problems {
				errs = append(errs, errors.New(p))
			}
			for _, r := range b.Requests {
				errs = append(errs, outcome(verb, r))
			}
			return errors.Join(errs...)
		},
	}.command(p)
}

// bundleApprovals counts for the open request that lacks most.
func bundleApprovals(b api.Bundle) (given, needed int, ok bool) {
	for _, r := range b.Requests {
		if r.State != string(locksteward.RequestPending) || r.ApprovalsNeeded == nil {
			continue
		}
		if !ok || *r.ApprovalsNeeded-r.ApprovalsGiven > needed-given {
			given, needed, ok = r.ApprovalsGiven, *r.ApprovalsNeeded, true
		}
	}
	return given, needed, ok
}

func writeBundle(w io.Writer, b api.Bundle) error {
	var head strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&head, "%-10s %s\n", name+":", fmt.Sprintf(format, args...))
	}
	line("bundle", "%s (%d of %d open)", b.ID, b.Open, len(b.Requests))
	line("host", "%s on %s", oneLine(b.Host), b.Target)
	if len(b.Requests) > 0 {
		asked := b.Requests[0] // all were asked for at once, and with one reason
		line("requested", "by %s at %s: %s", asked.Requester, asked.CreatedAt.Local().Format(time.DateTime), oneLine(asked.Reason))
	}
	if given, needed, ok := bundleApprovals(b); ok {
		line("approvals", "%d of %d", given, needed)
	}
	line("evidence", "%s", b.EvidenceHash)
	warned := map[string]bool{}
	for _, r := range b.Requests {
		for _, text := range r.Warnings {
			if !warned[text] {
				line("warning", "%s", oneLine(text))
			}
			warned[text] = true
		}
	}
	head.WriteByte('\n')
	if _, err := io.WriteString(w, head.String()); err != nil {
		return err
	}
	var rows [][]string
	for _, r := range b.Requests {
		rows = append(rows, []string{r.ID, r.State, cellKey(r.Evidence.Key), r.Evidence.Library, identity(r.Evidence), dash(oneLine(r.Outcome))})
	}
	if err := writeTable(w, []string{"ID", "STATE", "KEY", "LIBRARY", "IDENTITY", "OUTCOME"}, rows); err != nil {
		return err
	}
	for _, l := range b.LeftOut {
		name, err := l.Key.Bytes()
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "left out: %s: %s\n", locksteward.DisplayKey(name), oneLine(l.Why)); err != nil {
			return err
		}
	}
	return nil
}
