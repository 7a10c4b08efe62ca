package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// docBlock is a fenced block of a page, or lines that are indented by four spaces and begin with a command or a
// comment (language "indented").
type docBlock struct {
	page     string
	line     int // of its first line
	language string
	text     string
}

func (b docBlock) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

// docPages returns the text of every page for users, by path from the root of the repository. Decisions and the
// changelog are left out: they also name what was removed.
func docPages(t *testing.T) map[string]string {
	t.Helper()
	root := os.DirFS("../..")
	out := map[string]string{}
	read := func(name string) {
		raw, err := fs.ReadFile(root, name)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = string(raw)
	}
	for _, name := range []string{"README.md", "README.zh.md", "CONTRIBUTING.md", "SECURITY.md"} {
		read(name)
	}
	for _, dir := range []string{"docs", "deploy", "grafana"} {
		err := fs.WalkDir(root, dir, func(name string, d fs.DirEntry, err error) error {
			if err == nil && path.Ext(name) == ".md" && !strings.HasPrefix(name, "docs/adr/") {
				read(name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

var (
	// fenceOpens is the first line of a fenced block, also after the mark of a list.
	fenceOpens = regexp.MustCompile("^( *(?:(?:[-*]|[0-9]+\\.) +)?)```([a-z-]*)")
	// indentedCommand begins an indented block.
	indentedCommand = regexp.MustCompile(`^    +(locksteward|redis-cli|#) `)
)

// docBlocks returns the blocks of a page, those in lists included.
func docBlocks(page, text string) []docBlock {
	var out []docBlock
	var in *docBlock
	indent, before := 0, ""
	for i, line := range strings.Split(text, "\n") {
		bare := strings.TrimLeft(line, " ")
		opens := fenceOpens.FindStringSubmatch(line)
		isIndented := in != nil && in.language == "indented"
		switch {
		case isIndented && strings.HasPrefix(line, "    "):
			in.text += bare + "\n"
		case isIndented:
			out = append(out, *in)
			in = nil
		case in == nil && opens != nil:
			indent = len(opens[1])
			in = &docBlock{page: page, line: i + 2, language: opens[2]}
		case in == nil && before == "" && indentedCommand.MatchString(line):
			in = &docBlock{page: page, line: i + 1, language: "indented", text: bare + "\n"}
		case in != nil && strings.HasPrefix(bare, "```"):
			out = append(out, *in)
			in = nil
		case in != nil:
			in.text += line[min(indent, len(line)-len(bare)):] + "\n"
		}
		before = bare
	}
	return out
}

// schedule begins a line of a crontab.
var schedule = regexp.MustCompile(`^(?:[-0-9*/,]+ +){5}`)

// shellLines returns the lines of a block that a person types: all of them, or in a console block those after a
// prompt. Continued lines are one line.
func shellLines(b docBlock) []string {
	var out []string
	for line := range strings.SplitSeq(strings.ReplaceAll(b.text, "\\\n", " "), "\n") {
		switch typed, isPrompt := strings.CutPrefix(line, "$ "); {
		case b.language == "console" && isPrompt:
			out = append(out, typed)
		case b.language == "crontab":
			out = append(out, schedule.ReplaceAllString(line, ""))
		case b.language == "sh", b.language == "bash", b.language == "indented":
			out = append(out, line)
		}
	}
	return out
}

// shellToken is a comment, a redirection, a word, or an operator.
var shellToken = regexp.MustCompile(`#.*|[12]?(?:>>?|<)&?\s*[^\s;|&]+|(?:'[^']*'|"[^"]*"|\$\([^)]*\)|[^\s'"|;&()<>])+|[|;&()]+`)

// splitShell splits a line into its simple commands and those into words, as far as pages need it.
func splitShell(line string) [][]string {
	var commands [][]string
	var words []string
	for _, token := range append(shellToken.FindAllString(line, -1), ";") {
		switch token[0] {
		case '|', ';', '&', '(', ')', '#':
			if len(words) > 0 {
				commands = append(commands, words)
			}
			words = nil
		default:
			if !redirection.MatchString(token) {
				words = append(words, strings.NewReplacer("'", "", `"`, "").Replace(token))
			}
		}
	}
	return commands
}

var redirection = regexp.MustCompile(`^[12]?[<>]`)
