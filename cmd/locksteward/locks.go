package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward/internal/apiclient"
)

func locksCommand(p *program) *cobra.Command {
	return group("locks", "Look at the locks that an agent watches", locksListCommand(p), locksShowCommand(p))
}

func locksListCommand(p *program) *cobra.Command {
	var (
		agent  agentFlags
		filter apiclient.LocksQuery
		output outputFlag
	)
	c := &cobra.Command{
		Use:   "list",
		Short: "List locks, the oldest first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := agent.client()
			if err != nil {
				return err
			}
			list, err := client.Locks(cmd.Context(), filter)
			if err != nil {
				return err
			}
			if output.json() {
				return writeJSON(p.stdout, list)
			}
			if list.Total == 0 {
				_, err := fmt.Fprintln(p.stdout, "no locks")
				return err
			}
			if err := writeLocks(p.stdout, list.Locks, true); err != nil {
				return err
			}
			if len(list.Locks) < list.Total {
				fmt.Fprintf(p.stderr, "locksteward: %d of %d locks; raise --limit or filter\n", len(list.Locks), list.Total)
			}
			return nil
		},
	}
	agent.register(c)
	output.register(c)
	c.Flags().StringVar(&filter.Target, "target", "", "only of this target")
	c.Flags().StringVar(&filter.Class, "class", "", "only of this class")
	c.Flags().StringVar(&filter.Dialect, "library", "", "only of this library's format")
	c.Flags().StringVar(&filter.State, "state", "", "only those with findings that are firing or pending, clear ones, or no-ttl")
	c.Flags().IntVar(&filter.Limit, "limit", 1000, "at most this many")
	filter.Sort = "age"
	return c
}

func locksShowCommand(p *program) *cobra.Command {
	var (
		agent  agentFlags
		key    keyFlags
		output outputFlag
	)
	c := &cobra.Command{
		Use:   "show KEY",
		Short: "Show one lock, read from Redis now",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := agent.client()
			if err != nil {
				return err
			}
			ref, err := key.resolve(cmd.Context(), client, args[0])
			if err != nil {
				return err
			}
			detail, err := client.Lock(cmd.Context(), ref.target, ref.db, ref.key, "")
			if err != nil {
				return err
			}
			if output.json() {
				return writeJSON(p.stdout, detail)
			}
			return writeDetail(p.stdout, detail)
		},
	}
	agent.register(c)
	key.register(c)
	output.register(c)
	return c
}

// lockRef names one lock to the agent.
type lockRef struct {
	target string
	db     *int // nil: the target's own
	key    string
}

// resolve completes the name of a lock: the target may be left out when the
// agent watches one alone.
func (f keyFlags) resolve(ctx context.Context, client *apiclient.Client, arg string) (lockRef, error) {
	key, err := f.key(arg)
	if err != nil {
		return lockRef{}, err
	}
	ref := lockRef{target: f.target, key: key}
	if f.db >= 0 {
		ref.db = &f.db
	}
	if ref.target != "" {
		return ref, nil
	}
	list, err := client.Targets(ctx)
	if err != nil {
		return lockRef{}, err
	}
	if len(list.Targets) == 1 {
		ref.target = list.Targets[0].Name
		return ref, nil
	}
	names := make([]string, 0, len(list.Targets))
	for _, t := range list.Targets {
		names = append(names, t.Name)
	}
	return lockRef{}, usagef("the agent watches several targets, add --target with one of: %s", strings.Join(names, ", "))
}
