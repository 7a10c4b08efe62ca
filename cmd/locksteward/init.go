package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/initcfg"
	"github.com/locksteward/locksteward/internal/plural"
	"github.com/locksteward/locksteward/internal/scan"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// initObserve is how long init observes by default.
const initObserve = 30 * time.Second

type initFlags struct {
	server serverFlags
	look   observeFlags
	least  int
	name   string
	file   string
	yes    bool
	force  bool
	output outputFlag
}

func initCommand(p *program) *cobra.Command {
	var f initFlags
	c := &cobra.Command{
		Use:   "init [URL]",
		Short: "Write a first configuration from the locks of a server",
		Long: `Init observes a server for half a minute, groups its lock keys into classes by name,
and asks about each class whether to add it. It then writes a configuration in which a
comment explains every figure. It changes nothing on the server.

Without a terminal it prints the configuration and writes no file, unless --yes adds
all classes. An existing file is only replaced with --force. Passwords are never
written.`,
		Example: `  locksteward init redis://127.0.0.1:6379
  locksteward init redis://127.0.0.1:6379 --observe 5m --yes --config locksteward.yaml`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runInit(cmd.Context(), p, f, cmd.InOrStdin())
		},
	}
	f.server.register(c, storeForms)
	f.output.register(c)
	flags := c.Flags()
	f.look.register(c, "", initObserve, "how long to observe; a longer time sees more holds end")
	flags.IntVar(&f.least, "min-keys", 1, "propose classes of at least this many keys or holds")
	flags.StringVar(&f.name, "target", "", "name of the target in the configuration (default: the kind of its store, such as redis)")
	flags.StringVar(&f.file, "config", defaultConfigFile, "file to write")
	flags.BoolVar(&f.yes, "yes", false, "add all proposed classes without asking")
	flags.BoolVar(&f.force, "force", false, "replace an existing file")
	_ = c.RegisterFlagCompletionFunc("config", yamlFiles)
	return c
}

func runInit(ctx context.Context, p *program, f initFlags, in io.Reader) error {
	conn, err := f.server.config()
	if err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return err
	}
	target, err := f.target(conn)
	if err != nil {
		return err
	}
	opts, progress, err := f.look.options(p, conn)
	if err != nil {
		return err
	}
	person := !f.yes && terminal(in)
	f.begin(p, scan.TargetName(conn.URL), person)
	plan, err := scan.Propose(ctx, opts, f.least)
	progress.done()
	if err != nil {
		return err
	}

	taken := map[string]bool{}
	for _, proposal := range plan.Proposals {
		taken[proposal.Name] = true
	}
	if person {
		// The table goes where the questions go: stdout is for data.
		if err := writeProposals(p.stderr, plan); err != nil {
			return err
		}
		if taken, err = ask(ctx, in, p.stderr, plan); err != nil {
			return err
		}
	}
	text := initcfg.Write(plan, target, time.Now(), func(proposal initcfg.Proposal) bool { return taken[proposal.Name] })
	if _, err := config.Parse(f.file, []byte(text)); err != nil {
		return fmt.Errorf("the configuration is not written, since it would not be valid: %w", err)
	}
	written := f.yes || person
	if written {
		if err := writeFileAtomic(f.file, []byte(text), f.force); err != nil {
			return err
		}
	}
	if f.output.data() {
		return f.output.encode(p.stdout, initPlan(plan, f, text, taken, written))
	}
	return f.report(p, plan, text, len(taken), written)
}

// begin says what happens now, and what will not.
func (f *initFlags) begin(p *program, store string, person bool) {
	if f.look.observe > 0 {
		fmt.Fprintf(p.stderr, "locksteward: observing %s for %s, to see how long locks are held (--observe)\n", store, f.look.observe)
	}
	if !f.yes && !person {
		fmt.Fprintf(p.stderr, "locksteward: this is no terminal: the configuration will be printed, and %s will not be written without --yes\n", f.file)
	}
}

// report ends with what to do next.
func (f *initFlags) report(p *program, plan initcfg.Plan, text string, taken int, written bool) error {
	if !written {
		if _, err := io.WriteString(p.stdout, text); err != nil {
			return err
		}
		if len(plan.Proposals) == 0 {
			f.reportNone(p, plan)
		}
		_, err := fmt.Fprintf(p.stderr, "locksteward: %s was not written: add --yes to write this, or run it in a terminal to choose\n", f.file)
		return err
	}
	if f.yes {
		if err := writeProposals(p.stdout, plan); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(p.stderr, "locksteward: wrote %s with %s; review it, then run: locksteward run --config %s\n", f.file, plural.Count(taken, "class"), f.file)
	return err
}

// reportNone says that nothing is proposed, on stderr.
func (f *initFlags) reportNone(p *program, plan initcfg.Plan) {
	for line := range strings.Lines(noProposals(plan)) {
		fmt.Fprint(p.stderr, "locksteward: ", line)
	}
}

// check refuses before the server is asked anything.
func (f *initFlags) check() error {
	if f.least < 1 {
		return usagef("--min-keys: got %d, write 1 or more", f.least)
	}
	if _, err := os.Stat(f.file); err == nil && !f.force {
		return usagef("--config: %q exists already; add --force to replace it, or name another file", f.file)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return usagef("--config: %w", err)
	}
	dir := filepath.Dir(f.file)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return usagef("--config: there is no folder %q to write to", dir)
	}
	return nil
}

// target is the server as the configuration is to have it. Files are given with
// their whole path: the agent may run somewhere else.
func (f *initFlags) target(conn connect.Config) (initcfg.Target, error) {
	out := initcfg.Target{
		Name: cmp.Or(f.name, scan.TargetName(conn.URL)), URL: conn.URL, Username: conn.Username, ServerName: conn.ServerName, AddrMap: conn.AddrMap,
		PasswordLeftOut: conn.Password != "" && conn.PasswordFile == "",
	}
	for _, file := range []struct {
		from string
		to   *string
	}{
		{conn.PasswordFile, &out.PasswordFile},
		{conn.CAFile, &out.CAFile},
		{conn.CertFile, &out.CertFile},
		{conn.KeyFile, &out.KeyFile},
	} {
		if file.from == "" {
			continue
		}
		path, err := filepath.Abs(file.from)
		if err != nil {
			return out, err
		}
		*file.to = path
	}
	// A wrong name or URL is reported before the server is asked.
	if _, err := config.Parse(f.file, []byte(initcfg.Write(initcfg.Plan{}, out, time.Now(), nil))); err != nil {
		return out, usagef("%w", err)
	}
	return out, nil
}

func terminal(in io.Reader) bool {
	file, ok := in.(*os.File)
	return ok && isTerminal(file)
}
