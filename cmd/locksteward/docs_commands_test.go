package main

import (
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var (
	assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)
	through    = regexp.MustCompile(`^(docker (run|exec)|docker compose|kubectl|runuser|sudo|go run|exec|systemd-run|nohup|time) `)
)

// ownArgs returns the arguments with which a simple command starts locksteward,
// directly or through another program.
func ownArgs(words []string) ([]string, bool) {
	for len(words) > 0 && assignment.MatchString(words[0]) {
		words = words[1:]
	}
	if len(words) == 0 {
		return nil, false
	}
	isOwn := func(w string) bool { return path.Base(w) == "locksteward" }
	if isOwn(words[0]) {
		return words[1:], true
	}
	if !through.MatchString(strings.Join(words, " ") + " ") {
		return nil, false
	}
	at := slices.IndexFunc(words, isOwn)
	if words[0] == "docker" || words[0] == "kubectl" || words[0] == "runuser" { // Before it stand names of containers and accounts.
		for i, w := range words {
			if isOwn(w) {
				at = i
			}
		}
	}
	if at < 0 || at == len(words)-1 {
		return nil, false
	}
	return words[at+1:], true
}

// dryParse says why the program would refuse these arguments before it does
// anything.
func dryParse(args []string) error {
	root := newRoot(&program{stdout: io.Discard, stderr: io.Discard})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpFlag()
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	cmd.InitDefaultHelpFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if help, err := cmd.Flags().GetBool("help"); err == nil && help {
		return nil
	}
	if cmd.HasAvailableSubCommands() {
		if cmd == root && len(args) == 0 {
			return nil
		}
		return fmt.Errorf("%s has no subcommand %q", cmd.CommandPath(), rest)
	}
	if err := cmd.ValidateRequiredFlags(); err != nil {
		return err
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		return err
	}
	return cmd.ValidateFlagGroups()
}

// Every command line of a page is one that the program takes: the subcommand, its
// flags and their values, and the number of arguments.
func TestCommandsInPagesParse(t *testing.T) {
	t.Parallel()
	seen := 0
	for page, text := range docPages(t) {
		for _, b := range docBlocks(page, text) {
			for _, line := range shellLines(b) {
				for _, words := range splitShell(line) {
					args, ok := ownArgs(words)
					if !ok {
						continue
					}
					seen++
					if err := dryParse(args); err != nil {
						t.Errorf("%s: %s\n\t%v", b, line, err)
					}
				}
			}
		}
	}
	if seen < 80 {
		t.Errorf("only %d command lines found", seen)
	}
	for _, wrong := range [][]string{{"scna"}, {"scan", "--rediss", "x"}, {"locks", "list", "--limit", "many"}, {"locks", "show"}, {"locks"}, {"release", "aprove", "r-1"}} {
		if dryParse(wrong) == nil {
			t.Errorf("%v is taken for a command", wrong)
		}
	}
}

// The same for what stands within a sentence, where the name of a command alone
// is enough, and `a|b` means both.
func TestCommandsInSentencesExist(t *testing.T) {
	t.Parallel()
	inline := regexp.MustCompile("`(locksteward [^`\n]*)`")
	fence := regexp.MustCompile("(?ms)^ *```.*?^ *```")
	seen := 0
	for page, text := range docPages(t) {
		text = fence.ReplaceAllString(text, "")
		for _, m := range inline.FindAllStringSubmatch(text, -1) {
			seen++
			for _, args := range alternatives(m[1]) {
				if err := namesCommand(args); err != nil {
					t.Errorf("%s: `%s`\n\t%v", page, m[1], err)
				}
			}
		}
		if page != "docs/cli.md" {
			continue
		}
		cell := regexp.MustCompile("(?m)^\\| (`[a-z][^|]*(?:\\\\\\|[^|]*)*`) \\|")
		for _, row := range cell.FindAllStringSubmatch(text, -1) {
			for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
				seen++
				for _, args := range alternatives("locksteward " + strings.ReplaceAll(m[1], `\|`, "|")) {
					if err := namesCommand(args); err != nil {
						t.Errorf("docs/cli.md: `%s`\n\t%v", m[1], err)
					}
				}
			}
		}
	}
	if seen < 80 {
		t.Errorf("only %d commands found", seen)
	}
	if namesCommand([]string{"scan", "--no-such-flag"}) == nil || namesCommand([]string{"locks", "lst"}) == nil || namesCommand([]string{"lock"}) == nil {
		t.Error("what is no command is taken for one")
	}
}

// alternatives returns the arguments of a line, one list for each way in which
// its words with `|` can be read.
func alternatives(line string) [][]string {
	line, _, _ = strings.Cut(line, " > ")
	out := [][]string{nil}
	for _, word := range strings.Fields(line)[1:] {
		word = strings.Trim(word, `"'[]…`)
		if word == "" {
			continue
		}
		var next [][]string
		for w := range strings.SplitSeq(word, "|") {
			for _, args := range out {
				next = append(next, append(slices.Clone(args), w))
			}
		}
		out = next
	}
	return out
}

// namesCommand is nil if args begin with a command and name only flags of it;
// what it needs besides may be missing.
func namesCommand(args []string) error {
	if len(args) > 0 && args[0] == "COMMAND" {
		return nil
	}
	root := newRoot(&program{stdout: io.Discard, stderr: io.Discard})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if cmd == root && len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		return fmt.Errorf("there is no command %s", args[0])
	}
	if len(rest) > 0 && rest[0] == "SHELL" && isCompletion(cmd) {
		return nil
	}
	if cmd.HasAvailableSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return fmt.Errorf("%s has no subcommand %s", cmd.CommandPath(), rest[0])
	}
	for _, word := range rest {
		if word == "--" {
			break
		}
		name, ok := strings.CutPrefix(word, "--")
		name, _, _ = strings.Cut(name, "=")
		if ok && name != "help" && cmd.Flag(name) == nil && !isCompletion(cmd) {
			return fmt.Errorf("%s has no flag --%s", cmd.CommandPath(), name)
		}
	}
	return nil
}

func isCompletion(cmd *cobra.Command) bool {
	return strings.Contains(cmd.CommandPath(), "locksteward completion")
}
