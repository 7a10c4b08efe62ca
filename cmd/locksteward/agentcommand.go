package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward/internal/apiclient"
)

// agentCommand is a command that makes one request to the agent and prints the answer, as a
// table or as the data of the API.
type agentCommand[T any] struct {
	use, short, long, example string
	// args checks the arguments; nil takes none.
	args cobra.PositionalArgs
	// flags adds those of the command's own.
	flags func(c *cobra.Command)
	// reason, if set, is what --reason is for; it is asked for before anything else.
	reason *string
	ask    func(ctx context.Context, client *apiclient.Client, args []string) (T, error)
	show   func(w io.Writer, v T) error
	// names, of a list, are what other commands take; one a line for --output name.
	names func(v T) []string
	// after, if set, says what is wrong with an answer that was shown.
	after func(v T) error
}

func (t agentCommand[T]) command(p *program) *cobra.Command {
	var (
		agent  agentFlags
		output = outputFlag{list: t.names != nil}
	)
	if t.args == nil {
		t.args = cobra.NoArgs
	}
	c := &cobra.Command{
		Use: t.use, Short: t.short, Long: t.long, Example: t.example, Args: t.args,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if t.reason != nil && *t.reason == "" {
				return usagef("--reason is missing, write it in a sentence: it goes into the audit trail")
			}
			client, err := agent.client()
			if err != nil {
				return err
			}
			v, err := t.ask(cmd.Context(), client, args)
			if err != nil {
				return err
			}
			switch {
			case output.data():
				err = output.encode(p.stdout, v)
			case output.value == "name":
				err = writeNames(p.stdout, t.names(v))
			default:
				err = t.show(output.table(p.stdout), v)
			}
			if err == nil && t.after != nil {
				err = t.after(v)
			}
			return err
		},
	}
	agent.register(c)
	output.register(c)
	if t.reason != nil {
		c.Flags().StringVar(t.reason, "reason", "", "reason, for the audit trail")
	}
	if t.flags != nil {
		t.flags(c)
	}
	return c
}
