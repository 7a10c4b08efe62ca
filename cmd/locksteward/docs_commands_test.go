package main

import (
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// launchers start another program, which their last arguments name.
var launchers = []string{"docker", "kubectl", "runuser", "sudo", "go", "exec", "systemd-run", "nohup", "time"}

// ownArgs returns the arguments with which a simple command starts locksteward, directly or through a launcher.
func ownArgs(words []string) ([]string, bool) {
	isAssignment := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)
	for len(words) > 0 && isAssignment.MatchString(words[0]) {
		words = words[1:]
	}
	if len(words) > 0 && path.Base(words[0]) == "locksteward" {
		return words[1:], true
	}
	last := -1
	for i, w := range words {
		if path.Base(w) == "locksteward" {
			last = i
		}
	}
	if last < 0 || last == len(words)-1 || !slices.Contains(launchers, words[0]) || words[1] == "build" {
		return nil, false
	}
	return words[last+1:], true
}

// dryRoot is the root command as it is when arguments are parsed.
func dryRoot() *cobra.Command {
	root := newRoot(&program{stdout: io.Discard, stderr: io.Discard})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpFlag()
	root.InitDefaultVersionFlag()
	return root
}

// dryParse returns the error with which the program would refuse these arguments before it does anything.
func dryParse(args []string) error {
	root := dryRoot()
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	cmd.InitDefaultHelpFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if help, err := cmd.Flags().GetBool("help"); err == nil && help || cmd == root && len(args) == 0 {
		return nil
	}
	if cmd.HasAvailableSubCommands() {
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

// The program accepts every command line of a page: the subcommand, its flags and their values, and the number of
// arguments.
func TestCommandsInPagesParse(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for page, text := range docPages(t) {
		for _, b := range docBlocks(page, text) {
			for _, line := range shellLines(b) {
				for _, words := range splitShell(line) {
					args, ok := ownArgs(words)
					if !ok {
						continue
					}
					seen[b.language] = true
					if err := dryParse(args); err != nil {
						t.Errorf("%s: %s\n\t%v", b, line, err)
					}
				}
			}
		}
	}
	for _, language := range []string{"sh", "console", "crontab"} {
		if !seen[language] {
			t.Errorf("no command found in blocks of %s", language)
		}
	}
	for _, wrong := range [][]string{{"scna"}, {"scan", "--rediss", "x"}, {"locks", "list", "--limit", "many"}, {"locks", "show"}, {"locks"}, {"release", "aprove", "r-1"}} {
		if dryParse(wrong) == nil {
			t.Errorf("%v is accepted", wrong)
		}
	}
}

// What is taken for a command of a page: the tests above and below rely on it.
func TestSplitShell(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`locksteward run   # until Ctrl-C`:                       `[[locksteward run]]`,
		`umask 077; locksteward users add a --role b > a.token`:  `[[umask 077] [locksteward users add a --role b]]`,
		`locksteward scan 2>&1 | grep 'a b' && ls`:               `[[locksteward scan] [grep a b] [ls]]`,
		`T="$(cat a)" locksteward list --key="a b" -- x#y`:       `[[T=$(cat a) locksteward list --key=a b -- x#y]]`,
		`locksteward exec -- backup.sh >>backup.log`:             `[[locksteward exec -- backup.sh]]`,
		`docker run --rm --network host locksteward scan --db 1`: `[[docker run --rm --network host locksteward scan --db 1]]`,
	} {
		if got := fmt.Sprint(splitShell(line)); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

var (
	inlineCommand = regexp.MustCompile("`(locksteward [^`\n]*)`")
	fencedBlock   = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	firstCell     = regexp.MustCompile("(?m)^\\| (`[a-z][^|]*(?:\\\\\\|[^|]*)*`) \\|")
	codeSpan      = regexp.MustCompile("`([^`]+)`")
)

// Within a sentence, and in the tables of docs/cli.md, the name of a command is enough, and `a|b` means both.
func TestCommandsInSentencesExist(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	check := func(page, text string) {
		seen[page] = true
		for _, args := range alternatives(text) {
			if err := namesCommand(args); err != nil {
				t.Errorf("%s: `%s`\n\t%v", page, text, err)
			}
		}
	}
	for page, text := range docPages(t) {
		text = fencedBlock.ReplaceAllString(text, "")
		for _, m := range inlineCommand.FindAllStringSubmatch(text, -1) {
			check(page, m[1])
		}
		if page != "docs/cli.md" {
			continue
		}
		for _, row := range firstCell.FindAllStringSubmatch(text, -1) {
			for _, m := range codeSpan.FindAllStringSubmatch(row[1], -1) {
				check("tables of docs/cli.md", "locksteward "+strings.ReplaceAll(m[1], `\|`, "|"))
			}
		}
	}
	for _, page := range []string{"README.md", "tables of docs/cli.md"} {
		if !seen[page] {
			t.Errorf("no command found in %s", page)
		}
	}
	for _, wrong := range [][]string{{"scan", "--no-such-flag"}, {"locks", "lst"}, {"lock"}} {
		if namesCommand(wrong) == nil {
			t.Errorf("%v is accepted", wrong)
		}
	}
}

// alternatives returns the arguments of a line, one list for each way to read its words with `|`.
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

// namesCommand returns nil if args begin with a command and name only flags of it; what it needs besides may be
// missing.
func namesCommand(args []string) error {
	if len(args) > 0 && args[0] == "COMMAND" {
		return nil
	}
	root := dryRoot()
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if cmd == root && len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		return fmt.Errorf("there is no command %s", args[0])
	}
	if strings.Contains(cmd.CommandPath(), "locksteward completion") {
		return nil // of any shell
	}
	if cmd.HasAvailableSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return fmt.Errorf("%s has no subcommand %s", cmd.CommandPath(), rest[0])
	}
	for _, word := range rest {
		if word == "--" {
			break
		}
		name, isFlag := strings.CutPrefix(word, "--")
		name, _, _ = strings.Cut(name, "=")
		if isFlag && name != "help" && cmd.Flag(name) == nil {
			return fmt.Errorf("%s has no flag --%s", cmd.CommandPath(), name)
		}
	}
	return nil
}

// What pages say of make is a target of the Makefile, and what they say of go test names tests that exist.
func TestMakeAndGoTestInPages(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for page, text := range docPages(t) {
		for _, b := range docBlocks(page, text) {
			dir := ""
			for _, line := range shellLines(b) {
				for _, words := range splitShell(line) {
					switch {
					case words[0] == "cd":
						dir = words[1]
					case words[0] == "make":
						for _, target := range words[1:] {
							name, _, isVariable := strings.Cut(target, "=")
							if !regexp.MustCompile(`(?m)^` + name + map[bool]string{true: ` *\??=`, false: `:`}[isVariable]).Match(makefile) {
								t.Errorf("%s: %s: the Makefile has no %s", b, line, name)
							}
						}
					case len(words) > 1 && words[0] == "go" && words[1] == "test":
						if err := findTest(dir, words[2:]); err != nil {
							t.Errorf("%s: %s: %v", b, line, err)
						}
					}
				}
			}
		}
	}
	if findTest("", []string{"./cmd/locksteward", "-run", "TestThatIsNowhere"}) == nil || findTest("", []string{"./nowhere"}) == nil {
		t.Error("a test that does not exist is found")
	}
}

// findTest returns an error if go test would find nothing with these arguments.
func findTest(in string, args []string) error {
	dir, pattern := "", "^Test"
	for i, arg := range args {
		if strings.HasPrefix(arg, "./") || arg == "." {
			dir = strings.TrimSuffix(arg, "/...")
		}
		if (arg == "-run" || arg == "-bench") && i+1 < len(args) && !strings.HasPrefix(args[i+1], "/") && args[i+1] != "^$" {
			pattern, _, _ = strings.Cut(args[i+1], "/") // subtests follow the slash
		}
	}
	files, err := filepath.Glob(filepath.Join("../..", in, dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no tests in %s", dir)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Benchmark)\w*)\(`).FindAllSubmatch(raw, -1) {
			if regexp.MustCompile(pattern).Match(m[1]) {
				return nil
			}
		}
	}
	return fmt.Errorf("no test of %s matches %s", dir, pattern)
}
