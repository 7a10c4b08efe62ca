package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
)

// auditLines is the object of `audit list --output json`.
type auditLines struct {
	key     string      // what the events are of
	Entries []api.Entry `json:"entries"`
	// Events are the ends of holds of the lock that were not ours; with --key alone.
	Events []auditEvent `json:"events,omitempty"`
}

// auditEvent is one of them.
type auditEvent struct {
	Target string `json:"target"`
	api.LockEvent
}

func auditListCommand(p *program) *cobra.Command {
	var (
		agent  agentFlags
		output outputFlag
		q      apiclient.AuditQuery
		key    string
		base64 bool
	)
	c := &cobra.Command{
		Use:   "list",
		Short: "List audit entries, newest first",
		Long: `List shows what people and the agent did: requests, approvals, releases, sign-ins,
changes of the agent itself.

With --key it also shows how holds of the lock ended that the agent did not release:
released by the holder, expired, deleted by somebody else. Only locks with metadata
show who ended them; of others it says that they were released or deleted. These are history, not audit entries: they
cover locks of configured classes, and are kept for 30 days.`,
		Example: `  locksteward audit list --since 24h
  locksteward audit list --key lock:order:42
  locksteward audit list --actor ana --action release.approve --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := agent.client()
			if err != nil {
				return err
			}
			if q.Key, err = (&keyFlags{base64: base64}).key(key); err != nil {
				return err
			}
			list, err := listAudit(cmd.Context(), client, q)
			if err != nil {
				return err
			}
			if output.data() {
				return output.encode(p.stdout, list)
			}
			return writeAudit(p.stdout, list)
		},
	}
	agent.register(c)
	output.register(c)
	c.Flags().StringVar(&key, "key", "", "only entries about this lock, with the ends of its holds")
	c.Flags().BoolVar(&base64, "base64", false, "the key is base64, for one that is not valid UTF-8 (key_b64 in JSON)")
	c.Flags().StringVar(&q.Target, "target", "", "only of this target")
	c.Flags().StringVar(&q.Actor, "actor", "", "only by this person, or \"agent\"")
	c.Flags().StringVar(&q.Action, "action", "", "only of this kind, such as release.approve")
	c.Flags().StringVar(&q.Subject, "subject", "", "only about this request, or what else an entry is about")
	c.Flags().StringVar(&q.Search, "search", "", "only with this text in actor, action, key, reason or subject")
	c.Flags().StringVar(&q.Since, "since", "", "not older than this: 24h, or a time such as 2026-03-01T12:00:00Z")
	c.Flags().StringVar(&q.Until, "until", "", "older than this")
	c.Flags().IntVar(&q.Limit, "limit", 100, "maximum number of entries; 0: all")
	return c
}

// listAudit reads page after page, and the history of the lock that was named.
func listAudit(ctx context.Context, client *apiclient.Client, q apiclient.AuditQuery) (auditLines, error) {
	since, err := parseMoment("since", q.Since)
	if err != nil {
		return auditLines{}, err
	}
	until, err := parseMoment("until", q.Until)
	if err != nil {
		return auditLines{}, err
	}
	// The same moment for every page.
	q.Since, q.Until = apiclient.AuditTime(since), apiclient.AuditTime(until)
	out := auditLines{key: q.Key}
	out.Entries, err = paginate(q.Limit, auditPage, func(n int) ([]api.Entry, bool, error) {
		q.Limit = n
		page, err := client.AuditEntries(ctx, q)
		q.Before = page.Next
		return page.Entries, page.Next != 0, err
	})
	if err != nil {
		return out, err
	}
	if q.Key == "" || q.Actor != "" || q.Action != "" || q.Subject != "" || q.Search != "" {
		return out, nil
	}
	events, err := foreignEnds(ctx, client, q.Target, q.Key)
	out.Events = slices.DeleteFunc(events, func(e auditEvent) bool {
		return !since.IsZero() && e.At.Before(since) || !until.IsZero() && !e.At.Before(until)
	})
	return out, err
}

// mostEvents is how many events of a lock an agent returns.
const mostEvents = 1000

// foreignEnds are the ends of holds of a lock that no request here caused.
func foreignEnds(ctx context.Context, client *apiclient.Client, target, key string) ([]auditEvent, error) {
	targets := []string{target}
	if target == "" {
		list, err := client.Targets(ctx)
		if err != nil {
			return nil, err
		}
		targets = targets[:0]
		for _, t := range list.Targets {
			targets = append(targets, t.Name)
		}
	}
	var out []auditEvent
	for _, t := range targets {
		list, err := client.LockEvents(ctx, t, nil, key, mostEvents)
		if err != nil {
			return nil, err
		}
		for _, e := range list.Events {
			if slices.Contains([]string{"released", "expired", "deleted", "gone"}, e.Kind) {
				out = append(out, auditEvent{t, e})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b auditEvent) int { return b.At.Compare(a.At) })
	return out, nil
}

// endWords returns the word for the end of a hold, and what is known of who ended it.
func endWords(e api.LockEvent) (action, outcome string) {
	switch {
	case e.Kind == api.EventReleased && e.ByHolder:
		return "lock.released", "by its holder"
	case e.Kind == api.EventReleased:
		return "lock.ended", "released or deleted, not known by whom"
	case e.Kind == api.EventExpired:
		return "lock.expired", "ran out"
	case e.Kind == api.EventDeleted:
		return "lock.deleted", "deleted by somebody else"
	default:
		return "lock.ended", "not known how"
	}
}

// reasonOf is the reason that a person gave, else the sentence on the outcome.
func reasonOf(e api.Entry) string {
	if e.Reason != "" {
		return e.Reason
	}
	var detail struct {
		Sentence string `json:"sentence"`
	}
	_ = json.Unmarshal(e.Detail, &detail) // each action has facts of its own
	return detail.Sentence
}

func writeAudit(w io.Writer, list auditLines) error {
	if len(list.Entries)+len(list.Events) == 0 {
		_, err := fmt.Fprintln(w, "no entries")
		return err
	}
	type row struct {
		at    time.Time
		cells []string
	}
	var rows []row
	for _, e := range list.Entries {
		key := ""
		if raw, err := e.Bytes(); err == nil {
			key = locksteward.DisplayKey(raw)
		}
		rows = append(rows, row{e.At, []string{
			fmt.Sprint(e.Seq), e.At.UTC().Format(time.RFC3339), dash(oneLine(e.Actor)), dash(oneLine(e.Action)), dash(oneLine(e.Target)), dash(key),
			dash(oneLine(e.Subject)), dash(oneLine(api.OutcomeWords(e.Outcome))), dash(oneLine(reasonOf(e))),
		}})
	}
	for _, e := range list.Events {
		held := "held for " + span(time.Duration(e.HeldMs)*time.Millisecond)
		if e.HeldIsMinimum {
			held = "held for at least " + span(time.Duration(e.HeldMs)*time.Millisecond)
		}
		action, outcome := endWords(e.LockEvent)
		rows = append(rows, row{e.At, []string{
			"-", e.At.UTC().Format(time.RFC3339), "-", action, oneLine(e.Target), locksteward.DisplayKey(list.key), "-", outcome, held,
		}})
	}
	slices.SortStableFunc(rows, func(a, b row) int { return b.at.Compare(a.at) })
	cells := make([][]string, 0, len(rows))
	for _, r := range rows {
		cells = append(cells, r.cells)
	}
	return writeTable(w, []string{"ENTRY", "AT", "ACTOR", "ACTION", "TARGET", "KEY", "SUBJECT", "OUTCOME", "REASON"}, cells)
}
