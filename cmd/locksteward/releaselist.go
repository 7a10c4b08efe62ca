package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
)

// pollEvery is how often a command that waits asks the agent.
const pollEvery = time.Second

func releaseListCommand(p *program) *cobra.Command {
	var (
		agent  agentFlags
		filter apiclient.RequestsQuery
		key    keyFlags
		of     string
		limit  int
		watch  bool
		output = outputFlag{list: true}
	)
	c := &cobra.Command{
		Use:   "list",
		Short: "List requests, newest first",
		Long: `List requests, newest first. With --watch the list is printed again after each change,
until Ctrl-C; as JSON it is one object per change.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := agent.client()
			if err != nil {
				return err
			}
			if of != "" {
				name, err := key.key(of)
				if err != nil {
					return err
				}
				filter.Key = &name
			}
			show := func(list api.RequestList) error {
				if output.data() {
					return output.encode(p.stdout, list)
				}
				if output.value == "name" {
					return writeNames(p.stdout, namesOf(list.Requests, func(r api.Request) string { return r.ID }))
				}
				if len(list.Requests) == 0 {
					_, err := fmt.Fprintln(p.stdout, "no requests")
					return err
				}
				if err := writeRequests(output.table(p.stdout), list.Requests); err != nil || list.Next == "" {
					return err
				}
				_, err := fmt.Fprintf(p.stderr, "locksteward: the newest %d requests; raise --limit (0 is all) or filter\n", len(list.Requests))
				return err
			}
			if watch {
				return watchRequests(cmd.Context(), client, filter, limit, p.stderr, show)
			}
			list, err := requestsUpTo(cmd.Context(), client, filter, limit)
			if err != nil {
				return err
			}
			return show(list)
		},
	}
	agent.register(c)
	output.register(c)
	c.Flags().StringVar(&filter.State, "state", "", "only in this state, such as pending; open: all that are not final")
	c.Flags().StringVar(&filter.Target, "target", "", "only of this target")
	c.Flags().StringVar(&filter.Class, "class", "", "only of this class")
	c.Flags().StringVar(&filter.Requester, "requester", "", "only of this person")
	c.Flags().StringVar(&of, "key", "", "only about this lock")
	c.Flags().BoolVar(&key.base64, "base64", false, "--key is base64, for a key that is not valid UTF-8")
	c.Flags().StringVar(&filter.Since, "since", "", "only made since: 24h, or a time such as 2026-03-01T12:00:00Z")
	c.Flags().IntVar(&limit, "limit", 100, "maximum number; 0: all")
	c.Flags().BoolVar(&watch, "watch", false, "print the list again after each change, until Ctrl-C")
	return c
}

// requestsUpTo gathers pages until there are so many requests, or all for 0.
func requestsUpTo(ctx context.Context, client *apiclient.Client, q apiclient.RequestsQuery, limit int) (out api.RequestList, err error) {
	requests, err := paginate(limit, maxPageSize, func(n int) ([]api.Request, bool, error) {
		q.Limit = n
		out, err = client.Requests(ctx, q)
		q.Cursor = out.Next
		return out.Requests, q.Cursor != "", err
	})
	out.Requests = requests
	return out, err
}

// watchRequests shows the list whenever something of it changed, until ctx ends.
// An agent that does not answer for a while is reported once.
func watchRequests(ctx context.Context, client *apiclient.Client, q apiclient.RequestsQuery, limit int, stderr io.Writer,
	show func(api.RequestList) error,
) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var last []api.Request
	shown, away := false, false
	for {
		list, err := requestsUpTo(ctx, client, q, limit)
		switch {
		case err != nil && (!shown || ctx.Err() != nil):
			return err
		case err != nil && !away:
			fmt.Fprintf(stderr, "locksteward: %s; asking again\n", err)
			away = true
		case err == nil:
			away = false
			if !shown || !slices.EqualFunc(last, list.Requests, sameState) {
				if err := show(list); err != nil {
					return err
				}
			}
			last, shown = list.Requests, true
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// sameState says that nothing happened to a request.
func sameState(a, b api.Request) bool {
	return a.ID == b.ID && a.State == b.State && len(a.Decisions) == len(b.Decisions)
}

// awaitOutcome waits until a request is over and tells on the way what it waits
// for.
func awaitOutcome(ctx context.Context, client *apiclient.Client, stderr io.Writer, r api.Request) (api.Request, error) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	last := ""
	for !r.Final {
		if now := waitingFor(r); now != last {
			fmt.Fprintf(stderr, "locksteward: %s\n", now)
			last = now
		}
		select {
		case <-ctx.Done():
			fmt.Fprintf(stderr, "locksteward: request %s stays open; see 'locksteward release show %s'\n", r.ID, r.ID)
			return r, ctx.Err()
		case <-tick.C:
		}
		next, err := client.Request(ctx, r.ID)
		switch {
		case err == nil:
			r = next
		case ctx.Err() == nil:
			return r, fmt.Errorf("wait for request %s, which stays open: %w", r.ID, err)
		}
	}
	return r, nil
}

func waitingFor(r api.Request) string {
	if r.State != string(locksteward.RequestPending) || r.ApprovalsNeeded == nil {
		return fmt.Sprintf("request %s is %s", r.ID, r.State)
	}
	return fmt.Sprintf("request %s waits for %d of %d approvals until %s", r.ID,
		*r.ApprovalsNeeded-r.ApprovalsGiven, *r.ApprovalsNeeded, r.ExpiresAt.Local().Format(time.DateTime))
}

// notReleased is the error for a request that is over and whose lock is as it was.
func notReleased(r api.Request) error {
	switch locksteward.RequestState(r.State) {
	case locksteward.RequestReleased, locksteward.RequestAlreadyGone:
		return nil
	default:
		return fmt.Errorf("request %s is %s: %s", r.ID, r.State, r.Outcome)
	}
}
