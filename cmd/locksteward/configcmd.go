package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/plural"
)

// defaultConfigFile is read when --config is not given.
const defaultConfigFile = "locksteward.yaml"

func configCommand(p *program) *cobra.Command {
	check := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Check a configuration and report every problem in it",
		Long: `Check reads a configuration (default ` + defaultConfigFile + `) as 'run' does, with
classes.d beside it, the files of targets_from and the environment, and reports all
problems at once: path, value, and what to write. Files of secrets, keys and CAs must
exist, also those of receivers, so run it where the agent runs. It makes no
connections and no DNS queries.`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: yamlFiles,
		RunE: func(_ *cobra.Command, args []string) error {
			file := configArg(args)
			c, err := checkConfig(file)
			if err != nil {
				return err
			}
			for _, warning := range c.Warnings() {
				fmt.Fprintf(p.stderr, "locksteward: warning: %s\n", warning)
			}
			targets := plural.Count(len(c.Targets), "target")
			if n := len(c.Sources.SRV); n > 0 {
				targets += " and those of " + plural.Count(n, "DNS name")
			}
			_, err = fmt.Fprintf(p.stdout, "%s: valid: %s, %s, %s\n", file, targets,
				plural.Count(len(c.Classes), "class"), plural.Count(len(c.Alert.Receivers), "receiver"))
			return err
		},
	}
	var (
		output           = outputFlag{list: true}
		changed, example bool
	)
	show := &cobra.Command{
		Use:   "show [FILE]",
		Short: "Show the values that are used and where each comes from, or an example",
		Long: `Show reads a configuration (default ` + defaultConfigFile + `) as 'run' does, and lists each key
with the value that is used and where it comes from: a line of a file, an environment
variable, or the default. Secrets are masked.

With --example it prints a configuration with every key at its default instead.`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: yamlFiles,
		RunE: func(_ *cobra.Command, args []string) error {
			if example {
				if len(args) == 1 {
					return usagef("--example takes no FILE")
				}
				_, err := io.WriteString(p.stdout, locksteward.ExampleConfig)
				return err
			}
			file := configArg(args)
			settings, err := readConfig(file, config.Settings)
			if err != nil {
				return err
			}
			if changed {
				settings = slices.DeleteFunc(settings, func(s config.Setting) bool { return s.From == "default" })
			}
			switch {
			case output.data():
				return output.encode(p.stdout, settings)
			case output.value == "name":
				return writeNames(p.stdout, namesOf(settings, func(s config.Setting) string { return s.Path }))
			}
			rows := make([][]string, 0, len(settings))
			for _, s := range settings {
				rows = append(rows, []string{oneLine(s.Path), oneLine(s.From), oneLine(s.Value)})
			}
			return writeTable(output.table(p.stdout), []string{"KEY", "FROM", "VALUE"}, rows)
		},
	}
	output.register(show)
	show.Flags().BoolVar(&changed, "changed", false, "only keys that a file or the environment sets")
	show.Flags().BoolVar(&example, "example", false, "print an example with every key at its default")
	for _, other := range []string{"changed", "output", "no-headers"} {
		show.MarkFlagsMutuallyExclusive("example", other)
	}
	return group("config", "Check or show a configuration, or print an example", check, show)
}

// configArg returns the configuration that an optional argument names.
func configArg(args []string) string {
	if len(args) == 0 {
		return defaultConfigFile
	}
	return args[0]
}

// loadTargets is loadConfig with the targets that DNS names lead to now. What cannot
// be found out is a warning: the rest is there.
func loadTargets(ctx context.Context, p *program, file string) (config.Config, error) {
	c, err := loadConfig(file)
	if err != nil || len(c.Sources.SRV) == 0 {
		return c, err
	}
	c, err = c.Discovered(ctx)
	if err != nil {
		fmt.Fprintf(p.stderr, "locksteward: warning: %v\n", err)
	}
	return c, nil
}

// loadConfig reads a configuration; problems in it are the user's to mend.
func loadConfig(file string) (config.Config, error) { return readConfig(file, config.Load) }

// checkConfig is loadConfig that opens all files which an agent needs at its start.
func checkConfig(file string) (config.Config, error) { return readConfig(file, config.Check) }

func readConfig[T any](file string, read func(string) (T, error)) (T, error) {
	c, err := read(file)
	if invalid, ok := errors.AsType[*config.InvalidError](err); ok {
		problems := "problems"
		if len(invalid.Problems) == 1 {
			problems = "problem"
		}
		return c, usagef("%w\n%d %s in %s", err, len(invalid.Problems), problems, file)
	}
	if err != nil {
		return c, usagef("%w", err)
	}
	return c, nil
}

func yamlFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}
