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
	return group("findings", "List findings", findingsListCommand(p))
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
