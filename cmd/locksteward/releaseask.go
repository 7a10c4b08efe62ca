package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward/api"
)

// askFlags say what a request asks for beside its lock.
type askFlags struct {
	holderAlive bool
	takeOver    time.Duration
	lockDelay   time.Duration
	dryRun      bool
}

func (f *askFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.BoolVar(&f.holderAlive, "holder-alive", false, "the holder lives and renews, but is stuck: compare owner, type and count, not the expiry")
	flags.DurationVar(&f.takeOver, "take-over", 0, "put an owner that nobody is in the lock's place for so long, in place of freeing it")
	flags.DurationVar(&f.lockDelay, "lock-delay", 0, "nobody gets the lock for so long after its release (default: what its class says)")
	flags.BoolVar(&f.dryRun, "dry-run", false, "show what would be asked for and sent; store and touch nothing")
	c.MarkFlagsMutuallyExclusive("take-over", "lock-delay")
}

func (f *askFlags) fill(c *cobra.Command, in *api.CreateRequest) error {
	for name, d := range map[string]time.Duration{"--take-over": f.takeOver, "--lock-delay": f.lockDelay} {
		if d < 0 {
			return usagef("%s: got %s, write a positive duration such as 5m", name, d)
		}
	}
	in.HolderAlive, in.TakeOverMs = f.holderAlive, f.takeOver.Milliseconds()
	if c.Flags().Changed("lock-delay") {
		in.LockDelayMs = new(f.lockDelay.Milliseconds())
	}
	return nil
}

func releaseFollowCommand(p *program, verb, short string) *cobra.Command {
	var (
		agent  agentFlags
		reason string
		output outputFlag
	)
	c := &cobra.Command{
		Use:               verb + " ID --reason REASON",
		Short:             short,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if reason == "" {
				return usagef("--reason is missing, say why in a sentence: it goes into the audit trail")
			}
			client, err := agent.client()
			if err != nil {
				return err
			}
			follow := client.Undo
			if verb == "lift" {
				follow = client.Lift
			}
			r, err := follow(cmd.Context(), args[0], api.Follow{Reason: reason})
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
	c.Flags().StringVar(&reason, "reason", "", "why, for the audit trail")
	return c
}

func releasePreviewCommand(p *program) *cobra.Command {
	var (
		agent  agentFlags
		output outputFlag
	)
	c := &cobra.Command{
		Use:               "preview ID",
		Short:             "Show what approving a request would do now, and what changed since it was made",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := agent.client()
			if err != nil {
				return err
			}
			preview, err := client.Preview(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return showPreview(p, output, preview)
		},
	}
	agent.register(c)
	output.register(c)
	return c
}

func showPreview(p *program, output outputFlag, v api.Preview) error {
	if output.json() {
		return writeJSON(p.stdout, v)
	}
	var b strings.Builder
	e := v.Request.Evidence
	fmt.Fprintf(&b, "%s of %s (%s, dialect %s, identity %s)\n", e.Act, showKey(e.Key), e.Type, e.Dialect, e.Identity)
	switch {
	case v.Refusal != "":
		fmt.Fprintf(&b, "refused: %s\n", oneLine(v.Refusal))
	case !v.Found && e.Of == "":
		fmt.Fprintln(&b, "nothing stands under the key now: it would end as already_gone")
	case len(v.Differences) > 0:
		fmt.Fprintf(&b, "changed since: %s; nothing would be touched\n", oneLine(strings.Join(v.Differences, ", ")))
	default:
		fmt.Fprintln(&b, "unchanged: it would be carried out")
	}
	for _, w := range v.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", oneLine(w))
	}
	if v.Script != "" {
		fmt.Fprintln(&b, "\nkeys:")
		for _, k := range v.Keys {
			fmt.Fprintf(&b, "  %s\n", k)
		}
		fmt.Fprintln(&b, "arguments:")
		for _, a := range v.Args {
			fmt.Fprintf(&b, "  %s\n", a)
		}
		fmt.Fprintf(&b, "script:\n%s\n", v.Script)
	}
	_, err := fmt.Fprint(p.stdout, b.String())
	return err
}
