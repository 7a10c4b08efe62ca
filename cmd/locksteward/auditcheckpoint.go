package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/audit"
	"github.com/locksteward/locksteward/internal/plural"
	"github.com/locksteward/locksteward/store"
)

func auditCheckpointCommand(p *program) *cobra.Command {
	var (
		agent  agentFlags
		output outputFlag
		limit  int
		key    string
	)
	c := &cobra.Command{
		Use:   "checkpoint",
		Short: "Print checkpoints, to store them elsewhere",
		Long: `Checkpoint prints the newest checkpoints of an agent, one per line. Stored where the
agent's machine cannot write, they are the anchors of 'audit verify'. The number of
entries after the newest checkpoint is printed on stderr: the agent signs the head of
the trail every audit.checkpoint_every and after audit.checkpoint_entries.

With --sign-with the head of the trail is signed here, with a key that the agent does
not have.`,
		Example: `  locksteward audit checkpoint >> /mnt/worm/anchors
  locksteward audit checkpoint --agent https://locks.internal --sign-with /etc/auditor.pem >> anchors`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := agent.client()
			if err != nil {
				return err
			}
			if key != "" {
				k, err := audit.ReadKey(key)
				if err != nil {
					return usagef("--sign-with: %w", err)
				}
				s, err := client.AuditStatus(cmd.Context())
				if err != nil {
					return err
				}
				if s.Head.Seq == 0 {
					return errors.New("the trail has no entries yet")
				}
				c := audit.Sign(&k, store.Checkpoint{Seq: s.Head.Seq, Hash: s.Head.Hash}, time.Now())
				if output.data() {
					return output.encode(p.stdout, audit.View(c))
				}
				_, err = fmt.Fprintln(p.stdout, audit.Line(c))
				return err
			}
			list, err := client.AuditCheckpoints(cmd.Context(), 0, limit)
			if err != nil {
				return err
			}
			if output.data() {
				return output.encode(p.stdout, list)
			}
			for _, c := range list.Checkpoints {
				if _, err := fmt.Fprintln(p.stdout, oneLine(c.Line)); err != nil {
					return err
				}
			}
			return reportCheckpointAge(cmd.Context(), p.stderr, client, list.Checkpoints)
		},
	}
	agent.register(c)
	output.register(c)
	c.Flags().IntVar(&limit, "limit", 1, "number of checkpoints, newest first")
	c.Flags().StringVar(&key, "sign-with", "", "sign the head with the key in this file instead")
	return c
}

// reportCheckpointAge says how old the newest checkpoint is where the trail has gone on since, and
// how to have a fresh one: what is behind it is not anchored by it.
func reportCheckpointAge(ctx context.Context, w io.Writer, client *apiclient.Client, newest []api.Checkpoint) error {
	s, err := client.AuditStatus(ctx)
	if err != nil {
		return err
	}
	switch {
	case len(newest) == 0:
		_, err = fmt.Fprintf(w, "locksteward: the agent has not signed a checkpoint yet; --sign-with KEY signs the head of the trail, entry %d, now\n", s.Head.Seq)
	case s.Head.Seq > newest[0].Seq:
		_, err = fmt.Fprintf(w, "locksteward: the newest checkpoint is %s old, with %s since; --sign-with KEY signs the head now, and the agent does every audit.checkpoint_every\n",
			span(time.Since(newest[0].At)), plural.Count(s.Head.Seq-newest[0].Seq, "entry"))
	}
	return err
}
