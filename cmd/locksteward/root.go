package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// program is what every subcommand shares: where data and words go.
type program struct {
	stdout io.Writer
	stderr io.Writer
}

// run is the program: it returns the exit code. Data goes to stdout, everything
// else to stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot(&program{stdout: stdout, stderr: stderr})
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	code := exitCode(ctx, err)
	if own, ok := errors.AsType[*codeError](err); ok {
		if own.err != nil {
			report(stderr, own.err)
		}
		return code
	}
	switch code {
	case exitDone:
	case exitInterrupted:
		report(stderr, errors.New("interrupted"))
	default:
		report(stderr, err)
	}
	return code
}

func newRoot(p *program) *cobra.Command {
	root := &cobra.Command{
		Use:     "locksteward",
		Version: thisBuild().String(),
		Short:   "Monitoring and governance of distributed locks",
		Long: `Locksteward finds the locks of Redis, PostgreSQL, MySQL, MariaDB, etcd and ZooKeeper,
whichever library took them, reports those that are stuck or about to be, notifies
people, and releases dead locks after an operator approved.

Start with 'locksteward demo' to see it at work, 'locksteward scan URL' to
scan a server, and 'locksteward run' to watch it.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noSubcommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		// Flags are read first: those of an unknown command are all unknown.
		if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 {
			return noSubcommand(cmd, words)
		} else if cmd.Annotations[isGroup] != "" {
			return cmd.RunE(cmd, nil)
		}
		return usagef("%w; see '%s --help'", masked(err), cmd.CommandPath())
	})
	root.AddCommand(
		demoCommand(p),
		scanCommand(p),
		initCommand(p),
		runCommand(p),
		healthCommand(p),
		explainCommand(p),
		rulesCommand(p),
		locksCommand(p),
		statusCommand(p),
		targetsCommand(p),
		classesCommand(p),
		waitsCommand(p),
		reloadCommand(p),
		reportCommand(p),
		unlockCommand(p),
		execCommand(p),
		releaseCommand(p),
		auditCommand(p),
		findingsCommand(p),
		notificationsCommand(p),
		silencesCommand(p),
		usersCommand(p),
		configCommand(p),
		storeCommand(p),
		aclCommand(p),
		doctorCommand(p),
	)
	for _, c := range commands(root) {
		c.Args = refusePasswords(usageArgs(c.Args))
	}
	return root
}

// commands lists c and everything below it.
func commands(c *cobra.Command) []*cobra.Command {
	out := []*cobra.Command{c}
	for _, child := range c.Commands() {
		out = append(out, commands(child)...)
	}
	return out
}

// usageArgs makes a wrong number of arguments, and flags that exclude each other, usage errors.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	if check == nil {
		check = cobra.ArbitraryArgs
	}
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			if cmd.HasSubCommands() {
				return err
			}
			if want := wanted(cmd); len(want) > len(args) {
				return usagef("%s is missing; see '%s --help'", want[len(args)], cmd.CommandPath())
			} else if len(want) > 0 {
				return usagef("got %d arguments, takes %s: quote arguments with blanks; see '%s --help'", len(args), strings.Join(want, " "), cmd.CommandPath())
			} else if strings.HasPrefix(err.Error(), "unknown command") { // cobra.NoArgs
				return usagef("%w; see '%s --help'", masked(fmt.Errorf("got %q, takes no arguments", args[0])), cmd.CommandPath())
			}
			return usagef("%w; see '%s --help'", err, cmd.CommandPath())
		}
		if err := cmd.ValidateFlagGroups(); err != nil {
			if m := excluding.FindStringSubmatch(err.Error()); m != nil {
				err = errors.New("--" + strings.ReplaceAll(m[1], " ", " and --") + " exclude each other")
			}
			return usagef("%w; see '%s --help'", err, cmd.CommandPath())
		}
		return nil
	}
}

// excluding finds in an error of cobra's the flags that were given and exclude each other.
var excluding = regexp.MustCompile(`\[([^]]+)\] were all set$`)

// wanted names the arguments of a command as its usage line has them, flags left
// out.
func wanted(cmd *cobra.Command) []string {
	words := strings.Fields(cmd.Use)
	words = words[min(1, len(words)):]
	for i, w := range words {
		if strings.ContainsAny(w[:1], "-[{") {
			return words[:i]
		}
	}
	return words
}

// isGroup is the annotation of what [group] makes.
const isGroup = "group"

// group is a command that only holds subcommands.
func group(use, short string, children ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  noSubcommand,

		Annotations: map[string]string{isGroup: "yes"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			names := make([]string, 0, len(cmd.Commands()))
			for _, child := range cmd.Commands() {
				names = append(names, child.Name())
			}
			return usagef("%s needs a subcommand: %s", cmd.CommandPath(), strings.Join(names, ", "))
		},
	}
	c.AddCommand(children...)
	return c
}

func splitLines(text string) []string {
	return strings.Split(strings.TrimRight(text, "\n"), "\n")
}
