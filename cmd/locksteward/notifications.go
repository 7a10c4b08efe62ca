package main

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
)

func notificationsCommand(p *program) *cobra.Command {
	c := group("notifications", "Notifications and their receivers: list, retry, test",
		notificationsListCommand(p),
		notificationsRetryCommand(p),
		notificationsTestCommand(p),
	)
	c.Long = `A notification is kept until its receiver accepted it or it was given up. Those
that were given up can be retried for 30 days.

  locksteward notifications list
  locksteward notifications test ops
  locksteward notifications retry --receiver ops`
	return c
}

func notificationsListCommand(p *program) *cobra.Command {
	var (
		agent  agentFlags
		filter apiclient.NotificationQuery
		output = outputFlag{list: true}
	)
	c := &cobra.Command{
		Use:   "list",
		Short: "List receivers with their state, and notifications, the newest first",
		Long:  "With --state only notifications in that state are listed, and no receivers.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := agent.client()
			if err != nil {
				return err
			}
			list, err := client.Notifications(cmd.Context(), filter)
			if err != nil {
				return err
			}
			if output.data() {
				return output.encode(p.stdout, list)
			}
			if output.value == "name" {
				return writeNames(p.stdout, namesOf(list.Notifications, func(n api.Notification) string { return n.ID }))
			}
			return writeNotifications(output.table(p.stdout), list, filter.State == "")
		},
	}
	agent.register(c)
	output.register(c)
	c.Flags().StringVar(&filter.State, "state", "", "only waiting, delivered or dead (given up)")
	c.Flags().StringVar(&filter.Receiver, "receiver", "", "only to this receiver")
	c.Flags().IntVar(&filter.Limit, "limit", 100, "at most this many")
	c.Flags().Int64Var(&filter.Before, "before", 0, "only those before this SEQ, for the next page")
	return c
}

func writeNotifications(w io.Writer, list api.NotificationList, receivers bool) error {
	if receivers {
		if err := writeReceivers(w, list.Receivers); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
	}
	if len(list.Notifications) == 0 {
		_, err := fmt.Fprintln(w, "no notifications")
		return err
	}
	rows := make([][]string, 0, len(list.Notifications))
	for _, n := range list.Notifications {
		rows = append(rows, []string{
			strconv.FormatInt(n.Seq, 10), n.ID, oneLine(n.Receiver), n.State, oneLine(n.Type), n.CreatedAt.Local().Format(time.DateTime),
			strconv.Itoa(n.Attempts), dash(oneLine(n.LastError)),
		})
	}
	if err := writeTable(w, []string{"SEQ", "ID", "RECEIVER", "STATE", "TYPE", "WRITTEN", "ATTEMPTS", "LAST ERROR"}, rows); err != nil {
		return err
	}
	if list.Next == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "\nmore: --before %d\n", list.Next)
	return err
}

func writeReceivers(w io.Writer, list []api.Receiver) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "no receivers: alert.receivers is empty")
		return err
	}
	rows := make([][]string, 0, len(list))
	for _, r := range list {
		state := "ok"
		switch {
		case !r.Configured:
			state = "not configured"
		case r.Gone:
			state = "gone"
		case r.CircuitOpen:
			state = "accepts nothing"
		case r.Failing != "":
			state = "failing"
		}
		oldest := "-"
		if r.Waiting > 0 {
			oldest = span(time.Duration(r.OldestMs) * time.Millisecond)
		}
		rows = append(rows, []string{oneLine(r.Name), state, strconv.FormatInt(r.Waiting, 10), oldest, strconv.FormatInt(r.Dead, 10), dash(oneLine(r.Failing))})
	}
	return writeTable(w, []string{"RECEIVER", "STATE", "WAITING", "OLDEST", "GIVEN UP", "WHY"}, rows)
}

func notificationsRetryCommand(p *program) *cobra.Command {
	var (
		agent        agentFlags
		receiver, id string
		output       outputFlag
	)
	c := &cobra.Command{
		Use:   "retry --receiver NAME | --id ID",
		Short: "Retry notifications that were given up",
		Long: `Notifications are sent again under their ids, the oldest first. --id retries one,
with those about the same finding or request that were given up: otherwise the alert
would never resolve.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (receiver == "") == (id == "") {
				return usagef("write --receiver NAME for all that was given up for it, or --id ID for one notification: 'locksteward notifications list --state dead' lists them")
			}
			client, err := agent.client()
			if err != nil {
				return err
			}
			var out api.Retried
			if id != "" {
				out, err = client.RetryNotification(cmd.Context(), id)
			} else {
				out, err = client.RetryReceiver(cmd.Context(), receiver)
			}
			if err != nil {
				return err
			}
			if output.data() {
				return output.encode(p.stdout, out)
			}
			_, err = fmt.Fprintf(p.stdout, "notifications to be sent again: %d\n", out.Retried)
			return err
		},
	}
	agent.register(c)
	output.register(c)
	c.Flags().StringVar(&receiver, "receiver", "", "all that was given up for this receiver")
	c.Flags().StringVar(&id, "id", "", "this notification, msg_…")
	return c
}

func notificationsTestCommand(p *program) *cobra.Command {
	var (
		agent  agentFlags
		output outputFlag
	)
	c := &cobra.Command{
		Use:               "test RECEIVER",
		Short:             "Send a test to one receiver",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := agent.client()
			if err != nil {
				return err
			}
			out, err := client.TestReceiver(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if output.data() {
				err = output.encode(p.stdout, out)
			} else if out.Delivered {
				_, err = fmt.Fprintf(p.stdout, "%s accepted the test, in %s\n", oneLine(out.Receiver), testTook(out.DurationMs))
			}
			if err == nil && !out.Delivered {
				err = fmt.Errorf("receiver %s did not accept the test (%s): %s", oneLine(out.Receiver), oneLine(out.Reason), oneLine(out.Error))
			}
			return err
		},
	}
	agent.register(c)
	output.register(c)
	return c
}

// testTook is how long a test took.
func testTook(ms int64) string {
	if ms < 1 {
		return "less than 1ms"
	}
	return span(time.Duration(ms) * time.Millisecond)
}
