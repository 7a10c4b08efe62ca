package main

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
)

// The languages of commands that stand in no fenced block: lines that are indented
// by four spaces, and spans of a sentence between backticks.
const (
	indentedBlock = "indented"
	inlineBlock   = "inline"
)

// startsProgram finds what begins with a program that pages have people run.
var startsProgram = regexp.MustCompile(`^(?:[A-Z_]+=\S+ +)*(?:\./)?(` + strings.Join([]string{
	"locksteward", "redis-cli", "curl", "openssl", "promtool", "amtool", "pg_dump", "pg_restore", "psql", "sqlite3",
	"docker", "kubectl", "helm", "systemctl", "systemd-[a-z]+", "journalctl", "gh", "make", "go", "cd", "kill", "chmod", "printf",
	"python3?", "pip", "npm", "mvn", "java", "javac", "sh", "bash", "umask", "sed", "cat", "scripts/[a-z.-]+", `deploy/[a-z/.-]+\.sh`,
}, "|") + `)(?:\s|$)`)

// otherBlocks returns what of a page is a command and in no fence: indented lines
// and spans within sentences that begin with a program.
func otherBlocks(page, text string) []docBlock {
	var out []docBlock
	var paragraph []string
	var indented *docBlock
	first, fenced := 0, false
	end := func() {
		if indented != nil {
			out = append(out, *indented)
		}
		out = append(out, inlineBlocks(page, first, strings.Join(paragraph, "\n"))...)
		paragraph, indented = nil, nil
	}
	for i, line := range strings.Split(text, "\n") {
		bare := strings.TrimLeft(line, " ")
		switch {
		case fenced:
			fenced = !strings.HasPrefix(bare, "```")
		case fenceOpens.MatchString(line):
			end()
			fenced = true
		case bare == "":
			end()
		case len(line)-len(bare) >= 4 && len(paragraph) == 0 && (indented != nil || startsProgram.MatchString(bare) || strings.HasPrefix(bare, "# ")):
			if indented == nil {
				indented = &docBlock{page: page, line: i + 1, language: indentedBlock}
			}
			indented.text += bare + "\n"
		default:
			if len(paragraph) == 0 {
				first = i + 1
			}
			paragraph = append(paragraph, line)
		}
	}
	end()
	return out
}

// isOwnCommand reports whether words begin with a subcommand that does something.
func isOwnCommand(words []string) bool {
	for n := range min(3, len(words)) {
		if leaves()[strings.Join(words[:n+1], " ")] {
			return true
		}
	}
	return false
}

// leaves are our subcommands that have no others, such as "release bundle show".
var leaves = sync.OnceValue(func() map[string]bool {
	out := map[string]bool{}
	var walk func(c *cobra.Command, name string)
	walk = func(c *cobra.Command, name string) {
		for _, sub := range c.Commands() {
			walk(sub, strings.TrimSpace(name+" "+sub.Name()))
		}
		out[name] = !c.HasAvailableSubCommands()
	}
	walk(newRoot(&program{}), "")
	return out
})

var codeSpan = regexp.MustCompile("`([^`]+)`")

func inlineBlocks(page string, first int, paragraph string) []docBlock {
	var out []docBlock
	for _, at := range codeSpan.FindAllStringSubmatchIndex(paragraph, -1) {
		span := strings.ReplaceAll(strings.Join(strings.Fields(paragraph[at[2]:at[3]]), " "), `\|`, "|")
		if isOwnCommand(strings.Fields(span)) {
			span = "locksteward " + span // Where a page speaks of nothing else.
		}
		if startsProgram.MatchString(span) && strings.Contains(span, " ") {
			out = append(out, docBlock{page: page, line: first + strings.Count(paragraph[:at[2]], "\n"), language: inlineBlock, text: span + "\n"})
		}
	}
	return out
}

// allBlocks returns the blocks of a page in their order.
func allBlocks(page, text string) []docBlock {
	out := append(docBlocks(page, text), otherBlocks(page, text)...)
	slices.SortStableFunc(out, func(a, b docBlock) int { return a.line - b.line })
	return out
}

// What is taken for a command: the other tests rest on it that none is missed.
func TestWhatIsACommandInAPage(t *testing.T) {
	t.Parallel()
	page := strings.ReplaceAll(`Run 'locksteward scan
--redis URL' or 'redis-cli', not 'maxmemory-policy noeviction'.

1. '''sh
   locksteward run   # until Ctrl-C
   '''

    redis-cli GET a   # first
    # and then
    redis-cli EVAL "x" \
      1 a

    prose that is indented
`, "'", "`")
	var got []string
	for _, b := range allBlocks("p.md", page) {
		for _, line := range shellLines(b) {
			for _, words := range splitShell(line) {
				got = append(got, b.language+": "+strings.Join(words, " "))
			}
		}
	}
	want := []string{"inline: locksteward scan --redis URL", "sh: locksteward run", "indented: redis-cli GET a", "indented: redis-cli EVAL x 1 a"}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
