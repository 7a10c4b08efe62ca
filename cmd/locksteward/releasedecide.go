package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
)

// decision is a command by which one person approves or denies something: a request,
// or a bundle of them.
type decision[T any] struct {
	verb, short string // the verb is approve or deny
	// read gets what is decided on, evidence the hash of what was frozen of it.
	read          func(client *apiclient.Client, ctx context.Context, id string) (T, error)
	evidence      func(v T) string
	approve, deny func(client *apiclient.Client, ctx context.Context, id string, in api.Decide) (T, error)
	show          func(w io.Writer, v T) error
	after         func(v T) error
}

// command makes it. Without --evidence the evidence is what it has now: it never
// changes after the request, so both are the same unless the id is not the one that
// was looked at.
func (d decision[T]) command(p *program) *cobra.Command {
	var word api.Decide
	decide := d.approve
	if d.verb == "deny" {
		decide = d.deny
	}
	return agentCommand[T]{
		use: d.verb + " ID --reason REASON", short: d.short, args: cobra.ExactArgs(1),
		reason: &word.Reason,
		flags: func(c *cobra.Command) {
			c.Flags().StringVar(&word.EvidenceHash, "evidence", "", "hash of the evidence that you reviewed (default: the current one)")
			if d.verb == "approve" {
				registerConfirmations(c, &word.ConfirmNoIdentity, &word.ConfirmHolderAlive)
			}
		},
		ask: func(ctx context.Context, client *apiclient.Client, args []string) (T, error) {
			if word.EvidenceHash == "" {
				v, err := d.read(client, ctx, args[0])
				if err != nil {
					return v, err
				}
				word.EvidenceHash = d.evidence(v)
			}
			return decide(client, ctx, args[0], word)
		},
		show:  d.show,
		after: d.after,
	}.command(p)
}
