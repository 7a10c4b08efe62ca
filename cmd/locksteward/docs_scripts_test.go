package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// commandLines are command lines of ours that were run, as the subcommand and its
// flags.
type commandLines struct {
	root  *cobra.Command
	flags map[string][]map[string]bool // By subcommand, one for each line.
}

// add takes in what the words start, if it is this program.
func (l commandLines) add(words []string) {
	args, ok := ownArgs(words)
	if !ok {
		return
	}
	name, flags := l.subcommand(args)
	l.flags[name] = append(l.flags[name], flags)
}

// covers says what of a command line no other one has.
func (l commandLines) covers(args []string) string {
	name, flags := l.subcommand(args)
	if len(l.flags[name]) == 0 {
		return "no script and no page runs `" + name + "`"
	}
	for flag := range flags {
		if !slices.ContainsFunc(l.flags[name], func(have map[string]bool) bool { return have[flag] }) {
			return "no script and no page runs `" + name + "` with --" + flag
		}
	}
	return ""
}

// subcommand returns the command that args name, and the names of their flags.
func (l commandLines) subcommand(args []string) (name string, flags map[string]bool) {
	cmd, rest, err := l.root.Find(args)
	if err != nil {
		return strings.Join(args, " "), nil
	}
	flags = map[string]bool{}
	for _, w := range rest {
		if w == "--" {
			break
		}
		long, ok := strings.CutPrefix(w, "--")
		long, _, _ = strings.Cut(long, "=")
		if short, is := strings.CutPrefix(w, "-"); is && !ok && short != "" {
			if f := cmd.Flags().ShorthandLookup(short[:1]); f != nil {
				long, ok = f.Name, true
			}
		}
		if ok {
			flags[long] = true
		}
	}
	return cmd.CommandPath(), flags
}

// isName reports whether args are a subcommand and nothing else.
func (l commandLines) isName(args []string) bool {
	_, rest, err := l.root.Find(args)
	return err == nil && (len(rest) == 0 || len(rest) == 1 && (rest[0] == "--help" || rest[0] == "bash|zsh|fish")) ||
		len(args) == 2 && args[0] == "COMMAND"
}

// commandsOfScripts returns what the scripts of testdata/script run and what is to
// succeed.
func commandsOfScripts(t *testing.T) commandLines {
	t.Helper()
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	out := commandLines{newRoot(&program{}), map[string][]map[string]bool{}}
	out.root.InitDefaultHelpCmd()
	out.root.InitDefaultCompletionCmd()
	// With exit code 1 a command has done its work, and what it found is not what was hoped for.
	ran := regexp.MustCompile(`^(?:exec|exits 1) (?:sh -c '(.*)'(?: &\w*&?)?|(.*))$`)
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		script, _, _ := strings.Cut(string(raw), "\n-- ")
		for line := range strings.Lines(script) {
			m := ran.FindStringSubmatch(strings.TrimSpace(line))
			if m == nil {
				continue
			}
			for _, words := range splitShell(m[1] + m[2]) {
				out.add(words)
			}
		}
	}
	return out
}
