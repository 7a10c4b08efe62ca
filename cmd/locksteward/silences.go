package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/plural"
)

func silencesCommand(p *program) *cobra.Command {
	c := group("silences", "Mute matching findings, or one finding, for a while",
		silencesAddCommand(p), silencesListCommand(p), silencesExpireCommand(p))
	c.Long = `A silence mutes the notifications of findings that match all its matchers. Findings
stay in the console and in the metrics. Findings that still fire at its end are
notified then. Every silence has an end and a comment, and is in the audit trail. It needs the role approver or admin.

One finding is accepted by its fingerprint: 'locksteward silences add FINGERPRINT'.`
	return c
}

// ending is until when a silence holds, as flags say it.
type ending struct {
	until string
	span  time.Duration
}

func (e *ending) register(c *cobra.Command) {
	c.Flags().StringVar(&e.until, "until", "", "its end, such as 2026-11-30T08:00:00Z; at most 90 days away")
	c.Flags().DurationVar(&e.span, "for", 0, "how long, such as 2h; at most 2160h")
}

// longestSilence is what the agent takes.
const longestSilence = 90 * 24 * time.Hour

// wholeHours is a duration as people write it.
func wholeHours(d time.Duration) string {
	if d%time.Hour == 0 {
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return d.String()
}

// of fills in the end, which there must be.
func (e *ending) of(in *api.AddSilence) error {
	if (e.until == "") == (e.span == 0) {
		return usagef("give one of --for and --until: every silence has an end")
	}
	if e.until != "" {
		var err error
		if in.Until, err = time.Parse(time.RFC3339, e.until); err != nil {
			return usagef("--until: got %q, write a time such as 2026-11-30T08:00:00Z", e.until)
		}
		return nil
	}
	if e.span < time.Millisecond {
		return usagef("--for: got %s, write a positive duration such as 2h", e.span)
	}
	if e.span > longestSilence {
		return usagef("--for: must be at most %dh (90 days), got %s", int(longestSilence.Hours()), wholeHours(e.span))
	}
	in.ForMs = e.span.Milliseconds()
	return nil
}

// fingerprint is that of a finding ([locksteward.Finding.Fingerprint]).
var fingerprint = regexp.MustCompile(`^[0-9a-f]{32}$`)

// silenceArgs checks that there are matchers, or one fingerprint. What a matcher says is the agent's to check.
func silenceArgs(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("write matchers such as class=orders, or the fingerprint of one finding")
	}
	for _, arg := range args {
		switch {
		case strings.ContainsAny(arg, "=!"):
		case !fingerprint.MatchString(arg):
			return fmt.Errorf("got %q, write a matcher (label=value, label!=value, label=~regexp or label!~regexp), or a fingerprint of 32 hex digits as 'locksteward findings list' prints it", arg)
		case len(args) > 1:
			return fmt.Errorf("got %d arguments: the fingerprint %s names one finding and must be the only argument; fingerprint=%s is a matcher", len(args), arg, arg)
		}
	}
	return nil
}

func silencesAddCommand(p *program) *cobra.Command {
	var (
		in  api.AddSilence
		end ending
	)
	return agentCommand[api.Silence]{
		use:   "add {MATCHER... | FINGERPRINT} {--for DURATION | --until TIME} --reason REASON",
		short: "Mute the findings that match all matchers, or accept (mute) one finding",
		long: `A matcher is label=value, label!=value, label=~regexp or label!~regexp; regular
expressions (RE2) are anchored. Labels are target, db, class, rule, severity, key,
team, status, risk, library, subject, proof and fingerprint.

A FINGERPRINT, which 'locksteward findings list' prints, accepts the one finding that
has it. An accepted finding stays in the console and in the metrics. If it still fires
at the end of that time, it is notified again. 'locksteward silences list' lists
accepted findings too, 'locksteward silences expire' ends one.`,
		example: `  locksteward silences add class=nightly-import --for 2h --reason 'reindexing, INC-12'
  locksteward silences add team=checkout 'severity=~warning|info' --until 2026-11-30T08:00:00Z --reason 'migration'
  locksteward silences add 9bfb12c8accf2ecd8c061c725bb91264 --for 72h --reason 'fixed with the next release'`,
		args:   silenceArgs,
		reason: &in.Reason,
		flags:  end.register,
		ask: func(ctx context.Context, client *apiclient.Client, args []string) (api.Silence, error) {
			if err := end.of(&in); err != nil {
				return api.Silence{}, err
			}
			if fingerprint.MatchString(args[0]) {
				in.Fingerprint = args[0]
			} else {
				in.Matchers = args
			}
			return client.AddSilence(ctx, in)
		},
		show: writeSilence,
	}.command(p)
}

func silencesListCommand(p *program) *cobra.Command {
	var all bool
	return agentCommand[api.SilenceList]{
		use: "list", short: "List silences and accepted findings, newest first",
		flags: func(c *cobra.Command) {
			c.Flags().BoolVar(&all, "all", false, "include those that ended")
		},
		ask: func(ctx context.Context, client *apiclient.Client, _ []string) (api.SilenceList, error) {
			return client.Silences(ctx, all)
		},
		show: func(w io.Writer, list api.SilenceList) error {
			if len(list.Silences) == 0 {
				_, err := fmt.Fprintln(w, "no silences")
				return err
			}
			var rows [][]string
			for _, s := range list.Silences {
				ends, findings := s.EndsAt.Local().Format(time.DateTime), strconv.Itoa(s.Findings)
				if s.State != api.SilenceActive {
					findings = "-"
				}
				if s.EndedBy != "" {
					ends = "by " + oneLine(s.EndedBy) + " at " + s.EndedAt.Local().Format(time.DateTime)
				}
				rows = append(rows, []string{s.ID, s.State, ends, findings, oneLine(s.CreatedBy), silenceSubject(s), oneLine(s.Reason)})
			}
			return writeTable(w, []string{"ID", "STATE", "ENDS", "FINDINGS", "BY", "WHAT", "COMMENT"}, rows)
		},
	}.command(p)
}

func silencesExpireCommand(p *program) *cobra.Command {
	return agentCommand[api.Silence]{
		use: "expire ID", short: "End a silence now; findings that still fire are notified", args: cobra.ExactArgs(1),
		ask: func(ctx context.Context, client *apiclient.Client, args []string) (api.Silence, error) {
			return client.ExpireSilence(ctx, args[0])
		},
		show: writeSilence,
	}.command(p)
}

func silenceSubject(s api.Silence) string {
	texts := make([]string, 0, len(s.Matchers))
	for _, m := range s.Matchers {
		texts = append(texts, oneLine(m))
	}
	return strings.Join(texts, ", ")
}

func writeSilence(w io.Writer, s api.Silence) error {
	var err error
	if s.State == api.SilenceActive {
		_, err = fmt.Fprintf(w, "%s: mutes %s until %s; it matches %s now\n",
			s.ID, silenceSubject(s), s.EndsAt.Local().Format(time.DateTime), plural.Count(s.Findings, "finding"))
	} else {
		_, err = fmt.Fprintf(w, "%s: ended; findings that still fire are notified\n", s.ID)
	}
	return err
}
