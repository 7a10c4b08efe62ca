package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/audit"
	"github.com/locksteward/locksteward/internal/plural"
)

func auditExportCommand(p *program) *cobra.Command {
	var (
		agent        agentFlags
		from         storeFlags
		o            audit.ExportOptions
		since, until string
		resume       bool
	)
	c := &cobra.Command{
		Use:   "export FILE",
		Short: "Write the trail to a file that can be verified without a store",
		Long: `Export writes entries with their hashes and the checkpoints between them, one JSON
object per line, to a file with mode 0600. A name ending in .gz is compressed, - is
stdout. After an error the file is as it was before. Entries are verified while they
are exported.

The export is a contiguous part of the chain: --since starts with the first entry
that is not older, --until ends before the first that is not earlier.

With --resume an existing file is continued: run it every day with the same name, and
the file keeps what retention deletes from the store.`,
		Example: `  locksteward audit export trail.jsonl.gz
  locksteward audit export --resume /mnt/archive/trail.jsonl.gz
  locksteward audit export --since 2026-10-01T00:00:00Z --until 2026-11-01T00:00:00Z october.jsonl`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.Since, err = parseMoment("since", since); err != nil {
				return err
			}
			if o.Until, err = parseMoment("until", until); err != nil {
				return err
			}
			switch {
			case resume && (since != "" || o.From != 0):
				return usagef("--resume: continues where the file ends; remove --since and --from-seq")
			case resume && args[0] == "-":
				return usagef("--resume: needs a file, not -")
			}
			o.Progress = p.progress()
			return exportAudit(cmd.Context(), p, &agent, &from, args[0], resume, o)
		},
	}
	agent.register(c)
	from.register(c)
	c.Flags().StringVar(&since, "since", "", "start with the first entry not older than this: 24h, or a time such as 2026-03-01T12:00:00Z")
	c.Flags().StringVar(&until, "until", "", "end before the first entry not older than this")
	c.Flags().Int64Var(&o.From, "from-seq", 0, "start with this entry")
	c.Flags().BoolVar(&resume, "resume", false, "continue an existing file")
	return c
}

func exportAudit(ctx context.Context, p *program, agent *agentFlags, from *storeFlags, name string, resume bool, o audit.ExportOptions) (err error) {
	var source audit.Source
	if from.given() {
		st, _, oerr := from.open(ctx)
		if oerr != nil {
			return oerr
		}
		defer func() { err = errors.Join(err, st.Close()) }()
		source = st
	} else {
		client, cerr := agent.client()
		if cerr != nil {
			return cerr
		}
		source = agentTrail{client}
	}
	var done audit.Exported
	if name == "-" {
		done, err = audit.Export(ctx, source, p.stdout, o)
	} else {
		done, err = audit.ExportFile(ctx, source, name, resume, o)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(p.stderr, "locksteward: %s: %s, %d to %d, and %s\n", name, plural.Count(done.Entries, "entry"), done.First, done.Last, plural.Count(done.Checkpoints, "checkpoint"))
	return nil
}

// importPart is how much of a file one request takes: well below what the agent
// accepts.
const (
	importPart  = 500 << 10
	importLines = 2000
)

func auditImportCommand(p *program) *cobra.Command {
	var (
		agent  agentFlags
		target string
	)
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Import the audit file of `locksteward unlock` into the trail",
		Long: `Import appends releases that were made without an agent, from the audit file of
'locksteward unlock', to the agent's trail, with their original time and the name of
the importer. A line is only imported once. If a line cannot be read, nothing is
imported and all such lines are listed. It needs the role admin.`,
		Example: `  locksteward audit import locksteward-audit.jsonl
  locksteward audit import --target orders /home/ops/locksteward-audit.jsonl`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := agent.client()
			if err != nil {
				return err
			}
			return importAudit(cmd.Context(), p, client, args[0], target)
		},
	}
	agent.register(c)
	c.Flags().StringVar(&target, "target", "", "the agent's name of the server (default: \"redis\", as in the file)")
	return c
}

func importAudit(ctx context.Context, p *program, client *apiclient.Client, file, target string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return usagef("read audit file: %w", err)
	}
	var lines []string
	for line := range bytes.Lines(raw) {
		lines = append(lines, strings.TrimRight(string(line), "\r\n"))
	}
	var parts []api.AuditImport
	for first := 0; first < len(lines); {
		end, size := first, 0
		for end < len(lines) && end-first < importLines && (end == first || size+2*len(lines[end]) < importPart) {
			size += 2 * len(lines[end])
			end++
		}
		parts = append(parts, api.AuditImport{File: filepath.Base(file), FirstLine: first + 1, Lines: lines[first:end], Target: target})
		first = end
	}
	// All of the file is read before the first part of it is sent.
	var problems []error
	for _, part := range parts {
		_, err := audit.ParseImport(part, "", time.Now())
		problems = append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("import %q: %w", file, err)
	}
	var all api.AuditImported
	for _, part := range parts {
		done, err := client.AuditImport(ctx, part)
		if err != nil {
			if all.Imported > 0 {
				err = fmt.Errorf("%w\n%d lines before line %d were imported: run it again, they are known", err, all.Imported, part.FirstLine)
			}
			return err
		}
		all.Imported += done.Imported
		all.Known += done.Known
	}
	_, err = fmt.Fprintf(p.stdout, "%s: %d lines imported, %d known already\n", file, all.Imported, all.Known)
	return err
}
