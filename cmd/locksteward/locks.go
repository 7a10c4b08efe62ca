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

func locksCommand(p *program) *cobra.Command {
	return group("locks", "List the locks that an agent watches", locksListCommand(p))
}

func locksListCommand(p *program) *cobra.Command {
	var (
		filter apiclient.LocksQuery
		limit  int
	)
	return agentCommand[api.LockList]{
		use: "list", short: "List locks, oldest first",
		flags: func(c *cobra.Command) {
			c.Flags().StringVar(&filter.Target, "target", "", "only of this target")
			c.Flags().StringVar(&filter.Class, "class", "", "only of this class")
			c.Flags().StringVar(&filter.Library, "library", "", "only of this library's format")
			c.Flags().StringVar(&filter.State, "state", "", "only locks with firing or pending findings, clear (without findings), or no-ttl")
			c.Flags().StringVar(&filter.Holder, "holder", "", "only holders with this in their app, host, session or instance")
			c.Flags().StringVar(&filter.Match, "match", "", "only keys that match this pattern, such as 'lock:order:*'")
			c.Flags().StringVar(&filter.Text, "search", "", "only keys that contain this text, in upper or lower case")
			c.Flags().StringVar(&filter.Sort, "sort", "age", "age (longest held first), ttl (next to expire first) or key")
			c.Flags().IntVar(&limit, "limit", 1000, "maximum number; 0: all")
		},
		ask: func(ctx context.Context, client *apiclient.Client, _ []string) (api.LockList, error) {
			return locksUpTo(ctx, client, filter, limit)
		},
		names: func(list api.LockList) []string {
			return namesOf(list.Locks, func(l api.Lock) string { return l.Key.Key })
		},
		show: func(w io.Writer, list api.LockList) error {
			if err := writeUnseen(p.stderr, list.Unseen); err != nil {
				return err
			}
			if list.Total == 0 {
				_, err := fmt.Fprintln(w, "no locks")
				return err
			}
			if err := writeLockRows(w, list.Locks, true); err != nil || list.Next == "" {
				return err
			}
			_, err := fmt.Fprintf(p.stderr, "locksteward: %d of %d locks; raise --limit (0 is all) or filter\n", len(list.Locks), list.Total)
			return err
		},
	}.command(p)
}

// writeUnseen says why a list may lack something, one line for each target: empty is
// not the same as not looked at.
func writeUnseen(w io.Writer, list []api.Unseen) error {
	for _, u := range list {
		if _, err := fmt.Fprintf(w, "locksteward: target %s: %s; the list may be incomplete\n", oneLine(u.Target), oneLine(u.Reason)); err != nil {
			return err
		}
	}
	return nil
}

// locksUpTo gathers pages until there are so many locks, or all for 0. The total is
// that of the last page.
func locksUpTo(ctx context.Context, client *apiclient.Client, q apiclient.LocksQuery, limit int) (out api.LockList, err error) {
	locks, err := paginate(limit, maxPageSize, func(n int) ([]api.Lock, bool, error) {
		q.Limit = n
		out, err = client.Locks(ctx, q)
		q.Cursor = out.Next
		return out.Locks, q.Cursor != "", err
	})
	out.Locks = locks
	return out, err
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
	ref := lockRef{key: key}
	if f.db >= 0 {
		ref.db = &f.db
	}
	ref.target, err = f.oneTarget(ctx, client)
	return ref, err
}

// oneTarget is the target that was named, or the only one that the agent watches.
func (f keyFlags) oneTarget(ctx context.Context, client *apiclient.Client) (string, error) {
	if f.target != "" {
		return f.target, nil
	}
	list, err := client.Targets(ctx)
	if err != nil {
		return "", err
	}
	if len(list.Targets) == 1 {
		return list.Targets[0].Name, nil
	}
	if len(list.Targets) == 0 {
		return "", errors.New("the agent has no targets; add one under targets in its configuration")
	}
	names := make([]string, 0, len(list.Targets))
	for _, t := range list.Targets {
		names = append(names, t.Name)
	}
	return "", usagef("the agent watches several targets, add --target with one of: %s", strings.Join(names, ", "))
}
