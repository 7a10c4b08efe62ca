package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/lockstore"
	"github.com/locksteward/locksteward/internal/plural"
	"github.com/locksteward/locksteward/internal/scan"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/source/redis/connect"
)

func explainCommand(p *program) *cobra.Command {
	var (
		agent  agentFlags
		server serverFlags
		key    keyFlags
		match  []string
		all    bool
		output outputFlag
		lang   string
	)
	c := &cobra.Command{
		Use:   "explain KEY [URL]",
		Short: "Show a lock with the verdict of each rule",
		Long: `Explain shows one lock, the rules that fire on it, and with --all why each of the
others does not. It asks the agent. With URL it reads the server itself, without an
agent, and then only knows what two readings show.`,
		Example: `  locksteward explain lock:order:42
  locksteward explain lock:order:42 redis://127.0.0.1:6379`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if lang != "en" && lang != "zh" {
				return usagef("--lang: got %q, write en or zh", lang)
			}
			direct, err := server.direct(cmd, "match")
			if err != nil {
				return err
			}
			var detail api.LockDetail
			if direct {
				detail, err = explainDirectly(cmd.Context(), server, key, match, lang, args[0])
			} else {
				detail, err = explain(cmd.Context(), agent, key, lang, args[0])
			}
			var missing *missingLockError
			if errors.As(err, &missing) && !output.data() {
				return &codeError{exitError, writeText(p.stdout, missing.past)}
			}
			if err != nil {
				return err
			}
			if output.data() {
				return output.encode(p.stdout, detail)
			}
			return writeExplanation(p.stdout, detail, all)
		},
	}
	agent.register(c)
	server.register(c, storeForms)
	key.register(c)
	output.register(c)
	c.Flags().BoolVar(&all, "all", false, "show why the other rules do not fire")
	c.Flags().StringArrayVar(&match, "match", nil, "with URL: keys that are locks, as a glob")
	c.Flags().StringVar(&lang, "lang", "en", "language of findings: en or zh")
	return c
}

func explain(ctx context.Context, agent agentFlags, key keyFlags, lang, arg string) (api.LockDetail, error) {
	client, err := agent.client()
	if err != nil {
		return api.LockDetail{}, err
	}
	ref, err := key.resolve(ctx, client, arg)
	if err != nil {
		return api.LockDetail{}, err
	}
	d, err := client.Lock(ctx, ref.target, ref.db, ref.key, lang)
	if err != nil {
		err = describeMissingLock(ctx, client, ref, err)
	}
	return d, err
}

// explainDirectly reads the lock on the server of redis, without an agent.
func explainDirectly(ctx context.Context, server serverFlags, key keyFlags, match []string, lang, arg string) (api.LockDetail, error) {
	conn, err := server.config()
	if err != nil {
		return api.LockDetail{}, err
	}
	if key.db >= 0 {
		if conn, err = inDatabase(conn, key.db); err != nil {
			return api.LockDetail{}, err
		}
	}
	name, err := key.key(arg)
	if err != nil {
		return api.LockDetail{}, err
	}
	l, verdicts, err := scan.Explain(ctx, scan.Options{Connect: conn, Match: match}, name)
	if errors.Is(err, locksteward.ErrNotFound) {
		return api.LockDetail{}, fmt.Errorf(`%w: there is no lock "%s"; 'locksteward scan' lists what is there`, locksteward.ErrNotFound, cellKey(api.NewKey(name)))
	}
	if err != nil {
		return api.LockDetail{}, err
	}
	var said []api.Verdict
	for _, v := range verdicts {
		said = append(said, api.NewVerdict(v.Rule, string(v.Result), v.Reason, v.Finding, lang))
	}
	return api.NewLockDetail(l, said), nil
}

// inDatabase returns conn with db in place of the database of its URL.
func inDatabase(conn connect.Config, db int) (connect.Config, error) {
	if a, err := lockstore.Parse(conn.URL); err == nil && a.Kind != lockstore.Redis {
		return conn, usagef("--db: only Redis has numbered databases, remove it")
	}
	spec, err := connect.Parse(conn.URL)
	if err != nil {
		return conn, err
	}
	if spec.Mode == locksteward.ModeCluster && db != 0 {
		return conn, usagef("--db: a Cluster only has database 0, got %d", db)
	}
	spec.DB = db
	conn.URL, conn.Username = spec.String(), cmp.Or(conn.Username, spec.Username)
	return conn, nil
}

// worstFirst puts what fires in the order of its severity, in front.
func worstFirst(verdicts []api.Verdict) []api.Verdict {
	severity := func(v api.Verdict) locksteward.Severity {
		if v.Finding == nil {
			return -1
		}
		s, err := locksteward.ParseSeverity(v.Finding.Severity)
		if err != nil {
			return 0 // of an agent that knows more
		}
		return s
	}
	return slices.SortedStableFunc(slices.Values(verdicts), func(a, b api.Verdict) int { return cmp.Compare(severity(b), severity(a)) })
}

// writeExplanation shows the lock and the findings with their evidence; with all why the
// other rules have nothing to say, and else how many these are.
func writeExplanation(w io.Writer, d api.LockDetail, all bool) error {
	if err := writeDetail(w, d); err != nil {
		return err
	}
	var b, rest strings.Builder
	clear, others := 0, 0
	for _, v := range worstFirst(d.Verdicts) {
		switch {
		case v.Finding != nil:
			b.WriteByte('\n')
			writeEvidence(&b, *v.Finding)
			writeAdvice(&b, *v.Finding)
			fmt.Fprintf(&b, "  fingerprint: %s\n", v.Finding.Fingerprint)
			continue
		case v.Result == string(rules.Clear):
			clear++
		default:
			others++
		}
		fmt.Fprintf(&rest, "  %-22s %s: %s\n", v.Rule, strings.ReplaceAll(v.Result, "_", " "), oneLine(v.Reason))
	}
	switch {
	case all && rest.Len() > 0:
		b.WriteString("\nother rules\n" + rest.String())
	case rest.Len() > 0:
		fmt.Fprintf(&b, "\n%s clear, %d not applicable: --all says why\n", plural.Count(clear, "rule"), others)
	}
	return writeText(w, b.String())
}
