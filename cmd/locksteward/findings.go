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

func findingsCommand(p *program) *cobra.Command {
	return group("findings", "List and accept findings", findingsListCommand(p), findingsAcceptCommand(p))
}

func findingsListCommand(p *program) *cobra.Command {
	var (
		filter apiclient.FindingsQuery
		limit  int
	)
	return agentCommand[api.FindingList]{
		use: "list", short: "List pending and firing findings, the most severe first",
		flags: func(c *cobra.Command) {
			c.Flags().StringVar(&filter.Target, "target", "", "only of this target")
			c.Flags().StringVar(&filter.Class, "class", "", "only of this class")
			c.Flags().StringVar(&filter.Rule, "rule", "", "only of this rule, such as ttl/none")
			c.Flags().StringVar(&filter.Severity, "severity", "", "only critical, warning or info")
			c.Flags().StringVar(&filter.Status, "status", "", "only firing or pending")
			c.Flags().StringVar(&filter.Text, "search", "", "only on keys that contain this text, in upper or lower case")
			c.Flags().StringVar(&filter.Lang, "lang", "", "language of findings: en or zh")
			c.Flags().IntVar(&limit, "limit", 100, "maximum number; 0: all")
		},
		ask: func(ctx context.Context, client *apiclient.Client, _ []string) (api.FindingList, error) {
			return findingsUpTo(ctx, client, filter, limit)
		},
		names: func(list api.FindingList) []string {
			return namesOf(list.Findings, func(f api.ListedFinding) string { return f.Fingerprint })
		},
		show: func(w io.Writer, list api.FindingList) error {
			if err := writeUnseen(p.stderr, list.Unseen); err != nil {
				return err
			}
			if list.Total == 0 {
				_, err := fmt.Fprintln(w, "no findings")
				return err
			}
			if err := writeListed(w, list.Findings); err != nil || list.Next == "" {
				return err
			}
			_, err := fmt.Fprintf(p.stderr, "locksteward: %d of %d findings; raise --limit (0 is all) or filter\n", len(list.Findings), list.Total)
			return err
		},
	}.command(p)
}

// findingsUpTo gathers pages until there are so many findings, or all for 0.
func findingsUpTo(ctx context.Context, client *apiclient.Client, q apiclient.FindingsQuery, limit int) (out api.FindingList, err error) {
	findings, err := paginate(limit, maxPageSize, func(n int) ([]api.ListedFinding, bool, error) {
		q.Limit = n
		out, err = client.Findings(ctx, q)
		q.Cursor = out.Next
		return out.Findings, q.Cursor != "", err
	})
	out.Findings = findings
	return out, err
}

// writeListed shows findings as [writeFindings] does, each with its fingerprint and
// with what silences it.
func writeListed(w io.Writer, findings []api.ListedFinding) error {
	var b strings.Builder
	for i, f := range findings {
		if i > 0 {
			b.WriteByte('\n')
		}
		writeEvidence(&b, f.Finding)
		fmt.Fprintf(&b, "  fingerprint: %s\n", f.Fingerprint)
		switch {
		case !f.AcceptedUntil.IsZero():
			fmt.Fprintf(&b, "  accepted until %s by %s\n", f.AcceptedUntil.Local().Format(time.DateTime), f.SilencedBy)
		case f.SilencedBy != "":
			fmt.Fprintf(&b, "  silenced until %s by %s\n", f.SilencedUntil.Local().Format(time.DateTime), f.SilencedBy)
		}
		if i+1 == len(findings) || findings[i+1].Cause != f.Cause || findings[i+1].Remedy != f.Remedy {
			writeAdvice(&b, f.Finding)
		}
	}
	return writeText(w, b.String())
}

func findingsAcceptCommand(p *program) *cobra.Command {
	var (
		in  api.AddSilence
		end ending
	)
	return agentCommand[api.Silence]{
		use:   "accept FINGERPRINT {--for DURATION | --until TIME} --reason REASON",
		short: "Accept (mute) one finding for a while",
		long: `An accepted finding stays in the console and in the metrics. If it still fires at the
end of that time, it is notified again. 'locksteward silences list' lists accepted
findings, 'locksteward silences expire' ends one. It needs the role approver or admin.`,
		example: `  locksteward findings accept 9bfb12c8accf2ecd8c061c725bb91264 --for 72h --reason 'fixed with the next release'`,
		args:    cobra.ExactArgs(1),
		reason:  &in.Reason,
		flags:   end.register,
		ask: func(ctx context.Context, client *apiclient.Client, args []string) (api.Silence, error) {
			if err := end.of(&in); err != nil {
				return api.Silence{}, err
			}
			in.Fingerprint = args[0]
			return client.AddSilence(ctx, in)
		},
		show: writeSilence,
	}.command(p)
}
