package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/lockstore"
	"github.com/locksteward/locksteward/internal/plural"
	"github.com/locksteward/locksteward/internal/scan"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source/redis"
	"github.com/locksteward/locksteward/source/redis/connect"
	"github.com/locksteward/locksteward/source/redis/doctor"
)

type doctorFlags struct {
	server   serverFlags
	config   string
	target   string
	match    []string
	pushTest bool
	output   outputFlag
}

func doctorCommand(p *program) *cobra.Command {
	var f doctorFlags
	c := &cobra.Command{
		Use:   "doctor [URL]",
		Short: "Say whether Locksteward can work with a server, and what it would cost",
		Long: `Doctor checks a server, or all targets of a configuration: whether it is reachable, its
version, whether the user has the privileges it needs and no more, whether locks
survive a restart and full memory, whether the watch works, latency and clocks; and it
estimates the load of an agent. It takes some seconds, reads a sample of the keys and
writes nothing, unless --push-test lets it write one key that lives for two seconds.

Exit codes: 0 all checks passed, 1 a check failed, 2 wrong usage.`,
		Example: `  locksteward doctor redis://127.0.0.1:6379
  locksteward doctor --config locksteward.yaml --target orders --push-test
  locksteward doctor rediss://r:6380 --server-username scanner --server-password-file pw -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd.Context(), p, f) },
	}
	f.server.register(c, storeForms)
	c.Flags().StringVar(&f.config, "config", "", "configuration: look at its targets, as the agent would")
	c.Flags().StringVar(&f.target, "target", "", "with --config: at this target alone")
	c.Flags().StringArrayVar(&f.match, "match", nil, "with URL: keys that are locks, as a glob (may be repeated)")
	c.Flags().BoolVar(&f.pushTest, "push-test", false, "write one key that lives for two seconds, to see that the server pushes the change (as the releaser, if one is configured)")
	_ = c.RegisterFlagCompletionFunc("config", yamlFiles)
	f.output.register(c)
	return c
}

// doctorDocument is --output json, a contract (docs/doctor.md).
type doctorDocument struct {
	Failed  int             `json:"failed"`
	Warned  int             `json:"warned"`
	Targets []doctor.Report `json:"targets"`
}

func runDoctor(ctx context.Context, p *program, f doctorFlags) error {
	exams, err := f.exams(ctx, p)
	if err != nil {
		return err
	}
	doc := doctorDocument{Targets: []doctor.Report{}}
	for _, o := range exams {
		report := lockstore.Examine(ctx, o)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for _, c := range report.Checks {
			switch c.Status {
			case doctor.Fail:
				doc.Failed++
			case doctor.Warn:
				doc.Warned++
			}
		}
		doc.Targets = append(doc.Targets, report)
		if !f.output.data() {
			if err := writeExam(p.stdout, report, len(doc.Targets) > 1); err != nil {
				return err
			}
		}
	}
	if f.output.data() {
		if err := f.output.encode(p.stdout, doc); err != nil {
			return err
		}
	} else if _, err := fmt.Fprintf(p.stdout, "\n%s, %s\n", plural.Count(doc.Failed, "failure"), plural.Count(doc.Warned, "warning")); err != nil {
		return err
	}
	if doc.Failed > 0 {
		return fmt.Errorf("%s failed; see the remedy beside each", plural.Count(doc.Failed, "check"))
	}
	return nil
}

// exams are what to look at, as the flags say.
func (f *doctorFlags) exams(ctx context.Context, p *program) ([]lockstore.ExamineOptions, error) {
	switch {
	case f.config != "" && f.server.url != "":
		return nil, usagef("URL: does not go with --config, which names its targets")
	case f.config != "" && len(f.match) > 0:
		return nil, usagef("--match: does not go with --config, which has classes")
	case f.config == "" && f.target != "":
		return nil, usagef("--target: needs --config")
	case f.config != "":
		return f.ofConfig(ctx, p)
	}
	if f.server.where() == "" {
		return nil, usagef("URL or --config is missing, write a URL such as redis://127.0.0.1:6379/0 or set %s", serverEnv)
	}
	conn, err := f.server.config()
	if err != nil {
		return nil, err
	}
	classes, err := class.NewMatchSet(f.match)
	if err != nil {
		return nil, usagef("--match: %w", err)
	}
	return []lockstore.ExamineOptions{{
		Target: scan.TargetName(conn.URL), Connect: conn, Scan: scanner.DefaultConfig(), Redis: redis.Config{}.WithDefaults(), Classes: classes, PushTest: f.pushTest,
	}}, nil
}

func (f *doctorFlags) ofConfig(ctx context.Context, p *program) ([]lockstore.ExamineOptions, error) {
	cfg, err := loadTargets(ctx, p, f.config)
	if err != nil {
		return nil, err
	}
	classes, err := class.NewSet(cfg.Classes)
	if err != nil {
		return nil, usagef("%w", err)
	}
	var exams []lockstore.ExamineOptions
	for _, t := range cfg.Targets {
		if f.target != "" && t.Name != f.target {
			continue
		}
		o, err := f.ofTarget(t, classes)
		if err != nil {
			return nil, err
		}
		exams = append(exams, o)
	}
	if len(exams) == 0 {
		return nil, usagef("--target: %s has no target %q", f.config, f.target)
	}
	return exams, nil
}

func (f *doctorFlags) ofTarget(t config.Target, classes *class.Set) (lockstore.ExamineOptions, error) {
	conn, err := t.Connect()
	if err != nil {
		return lockstore.ExamineOptions{}, usagef("%w", err)
	}
	o := lockstore.ExamineOptions{Target: t.Name, Connect: conn, Scan: t.Scan, Redis: t.RedisScan, Tables: t.Tables, Classes: classes, PushTest: f.pushTest}
	release, has, err := t.ConnectRelease()
	if err != nil {
		return o, usagef("%w", err)
	}
	if has {
		o.Release = new(connect.Config)
		*o.Release = release
	}
	return o, nil
}

func writeExam(w io.Writer, r doctor.Report, apart bool) error {
	var b strings.Builder
	width := cmp.Or(widthOf(w), math.MaxInt) // none of a file
	write := func(status doctor.Status, name, text string) {
		head := fmt.Sprintf("  %-4s  %-12s  ", status, name)
		wrap(&b, head+oneLine(text), width, len(head))
		b.WriteByte('\n')
	}
	if apart {
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%s (%s)\n", oneLine(r.Target), oneLine(r.URL))
	for _, c := range r.Checks {
		where := ""
		if len(c.Nodes) > 0 {
			where = "  [" + strings.Join(c.Nodes, " ") + "]"
		}
		write(c.Status, c.Name, c.Found+where)
		if c.Todo != "" {
			write("", "", "-> "+c.Todo)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
