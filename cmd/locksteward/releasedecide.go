package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
)

// isBundle reports whether an id is of a bundle of requests, and not of one request in it.
func isBundle(id string) bool { return strings.HasPrefix(id, "b-") && !strings.Contains(id, ".") }

// releaseDecideCommand makes `release approve` or `release deny`, of a request or of a bundle.
// Without --evidence the evidence is what it has now: it never changes after the request, so
// both are the same unless the id is not the one that was looked at.
func releaseDecideCommand(p *program, verb, short string) *cobra.Command {
	var word api.Decide
	return agentCommand[any]{
		use: verb + " ID --reason REASON", short: short, args: cobra.ExactArgs(1),
		reason: &word.Reason,
		flags: func(c *cobra.Command) {
			c.Flags().StringVar(&word.EvidenceHash, "evidence", "", "hash of the evidence that you reviewed (default: the current one)")
			if verb == "approve" {
				registerConfirmations(c, &word.ConfirmNoIdentity, &word.ConfirmHolderAlive)
			}
		},
		ask: func(ctx context.Context, client *apiclient.Client, args []string) (any, error) {
			if word.EvidenceHash == "" {
				var err error
				if word.EvidenceHash, err = evidenceHash(ctx, client, args[0]); err != nil {
					return nil, err
				}
			}
			switch approve := verb == "approve"; {
			case isBundle(args[0]) && approve:
				return client.ApproveBundle(ctx, args[0], word)
			case isBundle(args[0]):
				return client.DenyBundle(ctx, args[0], word)
			case approve:
				return client.Approve(ctx, args[0], word)
			}
			return client.Deny(ctx, args[0], word)
		},
		show: writeRequested,
		after: func(v any) error {
			b, ok := v.(api.Bundle)
			if !ok {
				return outcome(verb, v.(api.Request))
			}
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

// evidenceHash is that of a request or bundle.
func evidenceHash(ctx context.Context, client *apiclient.Client, id string) (string, error) {
	if isBundle(id) {
		b, err := client.Bundle(ctx, id)
		return b.EvidenceHash, err
	}
	r, err := client.Request(ctx, id)
	return r.EvidenceHash, err
}

// writeRequested shows a request, a bundle, or what a request would do.
func writeRequested(w io.Writer, v any) error {
	switch v := v.(type) {
	case api.Request:
		return writeRequest(w, v)
	case api.Bundle:
		return writeBundle(w, v)
	case api.Preview:
		return writePreview(w, v)
	}
	return fmt.Errorf("cannot show a %T", v)
}
