package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/backend"
	"github.com/locksteward/locksteward/internal/plural"
	"github.com/locksteward/locksteward/rules"
)

func rulesCommand(p *program) *cobra.Command {
	return group("rules", "List and test rules", rulesListCommand(p), rulesTestCommand(p))
}

func rulesListCommand(p *program) *cobra.Command {
	var (
		file   string
		output = outputFlag{list: true}
		lang   string
	)
	c := &cobra.Command{
		Use:   "list [RULE]",
		Short: "List the rules with their defaults, or as configured; of one RULE show its page",
		Long: `List the rules with their defaults, or with --config as configured. With a RULE it
shows the page of that rule: what it finds, causes, remedies, configuration.`,
		Example: `  locksteward rules list
  locksteward rules list --config locksteward.yaml --output json
  locksteward rules list hold/too-long
  locksteward rules list custom/old-batch --config locksteward.yaml`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return rules.Names(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkLang(lang); err != nil {
				return err
			}
			by, err := loadRules(file)
			if err != nil {
				return err
			}
			list := backend.RuleList(by.Rules, lang)
			switch {
			case len(args) == 0 && output.data():
				return output.encode(p.stdout, list)
			case len(args) == 0 && output.value == "name":
				return writeNames(p.stdout, namesOf(list.Rules, func(r api.Rule) string { return r.Rule }))
			case len(args) == 0:
				return writeRules(output.table(p.stdout), list)
			}
			at := slices.IndexFunc(list.Rules, func(r api.Rule) bool { return r.Rule == args[0] })
			switch {
			case at < 0:
				return fmt.Errorf("%w: there is no rule %q; 'locksteward rules list' has them%s",
					locksteward.ErrNotFound, args[0], customHint(args[0], file))
			case output.data():
				return output.encode(p.stdout, list.Rules[at])
			}
			return writeRule(p.stdout, list.Rules[at], lang)
		},
	}
	configFlag(c, &file)
	langFlag(c, &lang)
	output.register(c)
	return c
}

func customHint(rule, file string) string {
	if strings.HasPrefix(rule, rules.CustomPrefix) && file == "" {
		return ", and those of a configuration with --config"
	}
	return ""
}

func configFlag(c *cobra.Command, file *string) {
	c.Flags().StringVar(file, "config", "", "configuration whose classes and rules to use (default: none)")
	_ = c.RegisterFlagCompletionFunc("config", yamlFiles)
}

func langFlag(c *cobra.Command, lang *string) {
	c.Flags().StringVar(lang, "lang", "en", "language of the texts: en or zh")
}

func checkLang(lang string) error {
	if lang != "en" && lang != "zh" {
		return usagef("--lang: got %q, write en or zh", lang)
	}
	return nil
}

// loadRules reads classes and rules of a configuration; without a file there are
// none of its own.
func loadRules(file string) (config.Judging, error) {
	if file == "" {
		return config.Judging{}, nil
	}
	by, err := config.LoadRules(file)
	if invalid, ok := errors.AsType[*config.InvalidError](err); ok {
		return config.Judging{}, usagef("%w\n%s in %s", err, plural.Count(len(invalid.Problems), "problem"), file)
	}
	if err != nil {
		return config.Judging{}, usagef("%w", err)
	}
	return by, nil
}

func writeRules(w io.Writer, list api.RuleList) error {
	var rows [][]string
	for _, r := range list.Rules {
		severity := r.Severity
		if r.SeverityNote != "" {
			severity += " *"
		}
		if r.Off {
			severity = "off"
		}
		for _, e := range r.Entries {
			if len(e.Classes) > 0 && r.When == "" {
				severity += " +"
				break
			}
		}
		rows = append(rows, []string{r.Rule, severity, span(time.Duration(r.ForMs) * time.Millisecond), dash(r.Risk), r.Judges, oneLine(r.Title)})
	}
	if err := writeTable(w, []string{"RULE", "SEVERITY", "FOR", "RISK", "JUDGES", "FINDS"}, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "\n* differs in some cases   + differs for some classes: 'locksteward rules list RULE'")
	return err
}

// writeRule shows the rule's page; in Chinese, and for a rule of the
// configuration, what is known of it.
func writeRule(w io.Writer, r api.Rule, lang string) error {
	if page, ok := locksteward.RulePage(r.Page); ok && lang == "en" && r.When == "" {
		if _, err := io.WriteString(w, page); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(w, "%s: %s\n\nseverity %s, for %s, judges %s\n", r.Rule, oneLine(r.Title), r.Severity,
			span(time.Duration(r.ForMs)*time.Millisecond), r.Judges)
		if r.When != "" {
			fmt.Fprintf(w, "when     %s\n", strings.ReplaceAll(strings.TrimSpace(r.When), "\n", "\n         "))
		}
		fmt.Fprintf(w, "\ncause    %s\nremedy   %s\n", oneLine(r.Cause), oneLine(r.Remedy))
	}
	if len(r.Entries) == 0 {
		return nil
	}
	fmt.Fprintln(w, "\nAs configured, the first match applies:")
	for _, e := range r.Entries {
		what := []string{"all classes"}
		if len(e.Classes) > 0 {
			what[0] = "classes " + strings.Join(e.Classes, ", ")
		}
		if e.Off {
			what = append(what, "off")
		}
		if e.Severity != "" {
			what = append(what, "severity "+e.Severity)
		}
		if e.ForMs != nil {
			what = append(what, "for "+span(time.Duration(*e.ForMs)*time.Millisecond))
		}
		fmt.Fprintln(w, "  "+strings.Join(what, ", "))
	}
	return nil
}

// createNew opens a file that must not exist yet, for this user alone.
func createNew(flag, name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, usagef("%s: %s exists already; write another name, or remove it", flag, name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return f, nil
}
