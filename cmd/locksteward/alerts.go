package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
)

func alertsCommand(p *program) *cobra.Command {
	c := group("alerts", "What people are told: what waits, what was given up, and telling it again",
		alertsListCommand(p, "list", "List messages to receivers, the newest first, and how receivers do", ""),
		alertsListCommand(p, "dead", "List messages that were given up, and why", "dead"),
		alertsReplayCommand(p),
		alertsTestCommand(p),
	)
	c.Long = `Every alert is a message to one receiver: it is kept until it was delivered or
given up, and what was given up can be told again for 30 days.

  locksteward alerts list
  locksteward alerts test ops
  locksteward alerts replay --receiver ops`
	return c
}

func alertsListCommand(p *program, use, short, state string) *cobra.Command {
	var (
		agent  agentFlags
		filter apiclient.DeliveriesQuery
		output outputFlag
	)
	c := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := agent.client()
			if err != nil {
				return err
			}
			list, err := client.Deliveries(cmd.Context(), filter)
			if err != nil {
				return err
			}
			if output.json() {
				return writeJSON(p.stdout, list)
			}
			return writeDeliveries(p, list, state)
		},
	}
	agent.register(c)
	output.register(c)
	filter.State = state
	if state == "" {
		c.Flags().StringVar(&filter.State, "state", "", "only waiting, delivered or dead (given up)")
	}
	c.Flags().StringVar(&filter.Receiver, "receiver", "", "only to this receiver")
	c.Flags().IntVar(&filter.Limit, "limit", 100, "at most this many")
	c.Flags().Int64Var(&filter.Before, "before", 0, "only those before this SEQ, for the next page")
	return c
}

func writeDeliveries(p *program, list api.DeliveryList, state string) error {
	if state == "" {
		if err := writeReceivers(p, list.Receivers); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(p.stdout); err != nil {
			return err
		}
	}
	if len(list.Deliveries) == 0 {
		_, err := fmt.Fprintln(p.stdout, "no messages")
		return err
	}
	rows := make([][]string, 0, len(list.Deliveries))
	for _, d := range list.Deliveries {
		rows = append(rows, []string{
			strconv.FormatInt(d.Seq, 10), d.ID, oneLine(d.Receiver), d.State, oneLine(d.Type), d.CreatedAt.Local().Format(time.DateTime),
			strconv.Itoa(d.Attempts), dash(oneLine(d.LastError)),
		})
	}
	if err := writeTable(p.stdout, []string{"SEQ", "ID", "RECEIVER", "STATE", "TYPE", "WRITTEN", "ATTEMPTS", "LAST ERROR"}, rows); err != nil {
		return err
	}
	if list.Next == 0 {
		return nil
	}
	_, err := fmt.Fprintf(p.stdout, "\nmore: --before %d\n", list.Next)
	return err
}

func writeReceivers(p *program, list []api.Receiver) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(p.stdout, "no receivers: alert.receivers is empty")
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
		case r.Resting:
			state = "takes nothing"
		case r.Failing != "":
			state = "failing"
		}
		oldest := "-"
		if r.Waiting > 0 {
			oldest = span(time.Duration(r.OldestMs) * time.Millisecond)
		}
		rows = append(rows, []string{oneLine(r.Name), state, strconv.FormatInt(r.Waiting, 10), oldest, strconv.FormatInt(r.Dead, 10), dash(oneLine(r.Failing))})
	}
	return writeTable(p.stdout, []string{"RECEIVER", "STATE", "WAITING", "OLDEST", "GIVEN UP", "WHY"}, rows)
}

func alertsReplayCommand(p *program) *cobra.Command {
	var (
		agent        agentFlags
		receiver, id string
		output       outputFlag
	)
	c := &cobra.Command{
		Use:   "replay --receiver NAME | --id ID",
		Short: "Tell again what was given up",
		Long: `Messages are sent again under their ids, the oldest first. With --id it is that
one, with what was given up about the same finding or request: a fire without its
resolve would stand for ever.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (receiver == "") == (id == "") {
				return usagef("write --receiver NAME for all that was given up for it, or --id ID for one message: 'locksteward alerts dead' lists them")
			}
			client, err := agent.client()
			if err != nil {
				return err
			}
			var out api.Replayed
			if id != "" {
				out, err = client.ReplayDelivery(cmd.Context(), id)
			} else {
				out, err = client.ReplayReceiver(cmd.Context(), receiver)
			}
			if err != nil {
				return err
			}
			if output.json() {
				return writeJSON(p.stdout, out)
			}
			_, err = fmt.Fprintf(p.stdout, "messages that are sent again: %d\n", out.Replayed)
			return err
		},
	}
	agent.register(c)
	output.register(c)
	c.Flags().StringVar(&receiver, "receiver", "", "all that was given up for this receiver")
	c.Flags().StringVar(&id, "id", "", "this message, msg_…")
	return c
}

func alertsTestCommand(p *program) *cobra.Command {
	var (
		agent  agentFlags
		output outputFlag
	)
	c := &cobra.Command{
		Use:               "test RECEIVER",
		Short:             "Tell one receiver that this is a test",
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
			if output.json() {
				err = writeJSON(p.stdout, out)
			} else if out.Delivered {
				_, err = fmt.Fprintf(p.stdout, "%s took the test, in %s\n", oneLine(out.Receiver), testTook(out.DurationMs))
			}
			if err == nil && !out.Delivered {
				err = fmt.Errorf("receiver %s did not take the test (%s): %s", oneLine(out.Receiver), oneLine(out.Reason), oneLine(out.Error))
			}
			return err
		},
	}
	agent.register(c)
	output.register(c)
	return c
}

// testTook is how long a test took: what is quick was not without any time.
func testTook(ms int64) string {
	if ms < 1 {
		return "less than 1ms"
	}
	return span(time.Duration(ms) * time.Millisecond)
}
