package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
)

func releaseKillSwitchCommand(p *program) *cobra.Command {
	c := group("kill-switch", "Stop all releases at once, or let them go on",
		killSwitchCommand(p, "on", "Stop all releases: nothing is requested, approved or executed", true),
		killSwitchCommand(p, "off", "Let releases go on", false),
		talk[api.Stops]{
			use: "status", short: "Show what keeps releases from happening now",
			ask: func(ctx context.Context, client *apiclient.Client, _ []string) (api.Stops, error) {
				return client.Stops(ctx)
			},
			show: writeStops,
		}.command(p),
	)
	c.Long = `The kill switch stops every release of the agent, also those without a person,
and survives a restart. Denying and undoing still work. It needs the role admin.`
	return c
}

func killSwitchCommand(p *program, use, short string, on bool) *cobra.Command {
	in := api.SetKillSwitch{On: &on}
	return talk[api.Stops]{
		use: use + " --reason REASON", short: short, reason: &in.Reason,
		ask: func(ctx context.Context, client *apiclient.Client, _ []string) (api.Stops, error) {
			return client.SetKillSwitch(ctx, in)
		},
		show: writeStops,
	}.command(p)
}

func releaseFreezeCommand(p *program) *cobra.Command {
	var (
		in    api.SetFreeze
		until string
		span  time.Duration
	)
	return talk[api.Stops]{
		use:   "freeze {--until TIME | --for DURATION | --end} --reason REASON",
		short: "Release nothing without a person until a time",
		long: `A freeze keeps the agent from releasing anything without a person, and people are
warned before they approve. It needs the role admin, and survives a restart.`,
		example: `  locksteward release freeze --for 2h --reason 'migration'
  locksteward release freeze --until 2026-11-30T08:00:00+01:00 --reason 'black friday'
  locksteward release freeze --end --reason 'done early'`,
		reason: &in.Reason,
		flags: func(c *cobra.Command) {
			c.Flags().StringVar(&until, "until", "", "its end, such as 2026-11-30T08:00:00Z")
			c.Flags().DurationVar(&span, "for", 0, "how long, such as 2h")
			c.Flags().BoolVar(&in.End, "end", false, "end the freeze")
		},
		ask: func(ctx context.Context, client *apiclient.Client, _ []string) (api.Stops, error) {
			given := 0
			for _, one := range []bool{until != "", span != 0, in.End} {
				if one {
					given++
				}
			}
			if given != 1 {
				return api.Stops{}, usagef("give one of --until, --for and --end")
			}
			if until != "" {
				var err error
				if in.Until, err = time.Parse(time.RFC3339, until); err != nil {
					return api.Stops{}, usagef("--until: got %q, write a time such as 2026-11-30T08:00:00Z", until)
				}
			}
			if span < 0 {
				return api.Stops{}, usagef("--for: got %s, write a positive duration such as 2h", span)
			}
			in.ForMs = span.Milliseconds()
			return client.SetFreeze(ctx, in)
		},
		show: writeStops,
	}.command(p)
}

func writeStops(w io.Writer, s api.Stops) error {
	var b strings.Builder
	switch k := s.KillSwitch; {
	case k.Unknown:
		fmt.Fprintln(&b, "kill switch: not known, since the store could not be read: everything counts as stopped")
	case k.On:
		fmt.Fprintf(&b, "kill switch: on, by %s at %s: %s\n", oneLine(k.By), k.Since.Local().Format(time.DateTime), dash(oneLine(k.Reason)))
	case k.Configured:
		fmt.Fprintln(&b, "kill switch: on in the configuration (release.kill_switch)")
	default:
		fmt.Fprintln(&b, "kill switch: off")
	}
	switch f := s.Freeze; {
	case !f.Until.IsZero():
		fmt.Fprintf(&b, "freeze: until %s, by %s: %s\n", f.Until.Local().Format(time.DateTime), oneLine(f.By), dash(oneLine(f.Reason)))
	case f.Configured != "":
		fmt.Fprintf(&b, "freeze: %s (release.freeze in the configuration)\n", oneLine(f.Configured))
	default:
		fmt.Fprintln(&b, "freeze: none")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
