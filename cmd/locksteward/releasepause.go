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

const scopeHelp = "all (every release) or automatic (those without a person)"

func releasePauseCommand(p *program) *cobra.Command {
	var (
		in    api.PauseReleases
		until string
		span  time.Duration
	)
	return agentCommand[api.ReleasePause]{
		use:   "pause --reason REASON",
		short: "Pause all releases, or those without a person",
		long: `While all releases are paused, requests and approvals are refused and nothing is
executed; denying and undoing still work. While automatic releases are paused, the
agent releases nothing without a person, and people are warned before they approve.

A pause lasts until its end, or without one until 'locksteward release resume'. It
survives a restart. It needs the role admin.`,
		example: `  locksteward release pause --reason 'INC-1: wrong locks are released'
  locksteward release pause --scope automatic --for 2h --reason 'migration'
  locksteward release pause --scope automatic --until 2026-11-30T08:00:00+01:00 --reason 'black friday'`,
		reason: &in.Reason,
		flags: func(c *cobra.Command) {
			c.Flags().StringVar(&in.Scope, "scope", api.PauseAll, scopeHelp)
			c.Flags().StringVar(&until, "until", "", "end of the pause, such as 2026-11-30T08:00:00Z (default: until resumed)")
			c.Flags().DurationVar(&span, "for", 0, "length of the pause, such as 2h")
		},
		ask: func(ctx context.Context, client *apiclient.Client, _ []string) (api.ReleasePause, error) {
			if err := checkScope(in.Scope); err != nil {
				return api.ReleasePause{}, err
			}
			if until != "" && span != 0 {
				return api.ReleasePause{}, usagef("give --until or --for, not both")
			}
			if until != "" {
				var err error
				if in.Until, err = time.Parse(time.RFC3339, until); err != nil {
					return api.ReleasePause{}, usagef("--until: got %q, write a time such as 2026-11-30T08:00:00Z", until)
				}
			}
			if span < 0 {
				return api.ReleasePause{}, usagef("--for: got %s, write a positive duration such as 2h", span)
			}
			in.ForMs = span.Milliseconds()
			return client.PauseReleases(ctx, in)
		},
		show: writeReleasePause,
	}.command(p)
}

func releaseResumeCommand(p *program) *cobra.Command {
	var in api.ResumeReleases
	return agentCommand[api.ReleasePause]{
		use:     "resume --reason REASON",
		short:   "End a pause of releases",
		long:    "Resume ends the pause of one scope that an admin set. It needs the role admin.",
		example: "  locksteward release resume --reason 'INC-1 is solved'\n  locksteward release resume --scope automatic --reason 'migration is done'",
		reason:  &in.Reason,
		flags: func(c *cobra.Command) {
			c.Flags().StringVar(&in.Scope, "scope", api.PauseAll, scopeHelp)
		},
		ask: func(ctx context.Context, client *apiclient.Client, _ []string) (api.ReleasePause, error) {
			if err := checkScope(in.Scope); err != nil {
				return api.ReleasePause{}, err
			}
			return client.ResumeReleases(ctx, in)
		},
		show: writeReleasePause,
	}.command(p)
}

func checkScope(scope string) error {
	switch scope {
	case api.PauseAll, api.PauseAutomatic:
		return nil
	default:
		return usagef("--scope: got %q, write %s or %s", scope, api.PauseAll, api.PauseAutomatic)
	}
}

func writeReleasePause(w io.Writer, s api.ReleasePause) error {
	var b strings.Builder
	for _, one := range []struct {
		name  string
		pause api.PauseOfScope
	}{{"all releases", s.All}, {"automatic releases", s.Automatic}} {
		fmt.Fprintf(&b, "%s: %s\n", one.name, pauseWords(one.pause))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func pauseWords(p api.PauseOfScope) string {
	switch {
	case p.Unknown:
		return "paused, since the store could not be read since the start"
	case p.By != "":
		text := "paused by " + oneLine(p.By) + " at " + p.Since.Local().Format(time.DateTime)
		if !p.Until.IsZero() {
			text += " until " + p.Until.Local().Format(time.DateTime)
		}
		return text + ": " + dash(oneLine(p.Reason))
	case p.Configured != "":
		return "paused by the configuration (" + oneLine(p.Configured) + ")"
	default:
		return "not paused"
	}
}
