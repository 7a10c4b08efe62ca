package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/scan"
)

// reportObserve is how long a report without an agent observes by default.
const reportObserve = time.Minute

type reportFlags struct {
	agent  agentFlags
	server serverFlags
	look   observeFlags
	target string
	class  string
	since  time.Duration
	output outputFlag
}

func reportCommand(p *program) *cobra.Command {
	var f reportFlags
	c := &cobra.Command{
		Use:   "report [URL]",
		Short: "Show how long locks were held, by class, and suggest expect and TTL",
		Long: `Report shows for each class quantiles of the holds that ended, the longest hold,
contention, the keys with the longest holds, and suggested values of expect and TTL.
It asks the agent, which keeps 30 days. With URL it observes a server itself for a
minute, and groups locks by name.

The length of a hold is a range: 1.2s-3.1s is between the two, ≥4s is a minimum and
≤4s a maximum. It is unknown if the bounds are too far apart.`,
		Example: `  locksteward report --since 168h
  locksteward report --class orders --output json
  locksteward report redis://127.0.0.1:6379 --observe 60s`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out, err := f.run(cmd, p)
			if err != nil {
				return err
			}
			if f.output.data() {
				return f.output.encode(p.stdout, out)
			}
			return writeReport(p.stdout, out)
		},
	}
	f.agent.register(c)
	f.server.register(c, storeForms)
	f.output.register(c)
	c.Flags().StringVar(&f.target, "target", "", "only of this target")
	c.Flags().StringVar(&f.class, "class", "", "only of this class")
	c.Flags().DurationVar(&f.since, "since", 24*time.Hour, "period of the agent's report, up to 720h")
	f.look.register(c, "with URL: ", reportObserve, "how long to observe")
	return c
}

func (f *reportFlags) run(cmd *cobra.Command, p *program) (api.Report, error) {
	direct, err := f.server.direct(cmd, observeFlagNames...)
	if err != nil {
		return api.Report{}, err
	}
	if !direct {
		client, err := f.agent.client()
		if err != nil {
			return api.Report{}, err
		}
		return client.Report(cmd.Context(), f.target, f.class, f.since.String())
	}
	if f.look.observe <= 0 {
		return api.Report{}, usagef("--observe: got %s, write a positive duration such as 60s", f.look.observe)
	}
	return f.ask(cmd.Context(), p)
}

func (f *reportFlags) ask(ctx context.Context, p *program) (api.Report, error) {
	conn, err := f.server.config()
	if err != nil {
		return api.Report{}, err
	}
	opts, progress, err := f.look.options(p, conn)
	if err != nil {
		return api.Report{}, err
	}
	defer progress.done()
	return scan.Report(ctx, opts, f.class)
}

func writeReport(w io.Writer, out api.Report) error {
	var rows [][]string
	targets := false
	for _, c := range out.Classes {
		targets = targets || c.Target != ""
	}
	for _, c := range out.Classes {
		row := []string{
			c.Class, fmt.Sprint(c.Holds), showBounds(c.P50), showBounds(c.P95), showBounds(c.P99), showLongest(c.Longest),
			fmt.Sprint(c.Open.Locks), showContention(c.Contention), showExpect(c), showBounds(c.TTL) + showNext(c.Suggested.TTLMs),
		}
		if targets {
			row = append([]string{c.Target}, row...)
		}
		rows = append(rows, row)
	}
	if len(rows) > 0 {
		header := []string{"CLASS", "HOLDS", "P50", "P95", "P99", "LONGEST", "OPEN", "CONTENTION", "EXPECT", "TTL"}
		if targets {
			header = append([]string{"TARGET"}, header...)
		}
		if err := writeTable(w, header, rows); err != nil {
			return err
		}
	}
	var b strings.Builder
	for _, c := range out.Classes {
		writeClassReport(&b, c)
	}
	b.WriteByte('\n')
	if !out.Since.IsZero() {
		fmt.Fprintf(&b, "from %s to %s\n", out.Since.Local().Format(time.DateTime), out.Until.Local().Format(time.DateTime))
	}
	for _, note := range out.Notes {
		fmt.Fprintf(&b, "note: %s\n", oneLine(note))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeClassReport shows what does not fit into a row.
func writeClassReport(b *strings.Builder, c api.ClassReport) {
	title := c.Class
	if c.Target != "" {
		title = c.Target + " " + title
	}
	if len(c.Match) > 0 {
		title += "  " + oneLine(strings.Join(c.Match, " "))
	}
	fmt.Fprintf(b, "\n%s\n", title)
	for _, k := range c.Worst {
		fmt.Fprintf(b, "  %s  %s  %s", showBounds(&k.HoldBounds), k.How, cellKey(k.Key))
		if k.Holder != "" {
			fmt.Fprintf(b, "  %s", oneLine(k.Holder))
		}
		if !k.EndedAt.IsZero() {
			fmt.Fprintf(b, "  %s", k.EndedAt.Local().Format(time.DateTime))
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(b, "  expect: %s\n  ttl: %s\n", showSuggestion(c.Suggested.ExpectMs, c.Suggested.ExpectReason), showSuggestion(c.Suggested.TTLMs, c.Suggested.TTLReason))
	for _, note := range c.Notes {
		fmt.Fprintf(b, "  note: %s\n", oneLine(note))
	}
}

// showBounds shows a duration that is known from two sides: one number where
// they are within a tenth of each other, "unknown" where they tell no length.
func showBounds(d *api.HoldBounds) string {
	if d == nil {
		return "-"
	}
	low := time.Duration(d.AtLeastMs) * time.Millisecond
	switch {
	case !d.Known():
		return "unknown"
	case d.AtMostMs == nil:
		return "≥" + span(low)
	case *d.AtMostMs-d.AtLeastMs <= *d.AtMostMs/10:
		return span(time.Duration(*d.AtMostMs) * time.Millisecond)
	case d.AtLeastMs == 0:
		return "≤" + span(time.Duration(*d.AtMostMs)*time.Millisecond)
	default:
		return span(low) + "-" + span(time.Duration(*d.AtMostMs)*time.Millisecond)
	}
}

func showLongest(k *api.HeldKey) string {
	if k == nil {
		return "-"
	}
	text := showBounds(&k.HoldBounds)
	if k.How == "held" {
		text += " (held)"
	}
	return text
}

func showContention(c *api.Contention) string {
	if c == nil {
		return "-"
	}
	var parts []string
	if c.Contended != nil && c.Acquired != nil {
		parts = append(parts, fmt.Sprintf("%d of %d", *c.Contended, *c.Acquired))
	}
	if c.MaxWaiters != nil {
		parts = append(parts, fmt.Sprintf("%d waiting", *c.MaxWaiters))
	}
	return strings.Join(parts, ", ")
}

func showExpect(c api.ClassReport) string {
	now := "-"
	if c.ExpectMs != nil {
		now = span(time.Duration(*c.ExpectMs) * time.Millisecond)
	}
	return now + showNext(c.Suggested.ExpectMs)
}

// showNext is an arrow to what is suggested.
func showNext(ms *int64) string {
	if ms == nil {
		return ""
	}
	return " → " + span(time.Duration(*ms)*time.Millisecond)
}

func showSuggestion(ms *int64, reason string) string {
	if ms == nil {
		return "nothing to suggest: " + oneLine(reason)
	}
	return span(time.Duration(*ms)*time.Millisecond) + ", " + oneLine(reason)
}
