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

// docBlock is a fenced block of code of a page.
type docBlock struct {
	page     string
	line     int // Of its first line.
	language string
	text     string
}

func (b docBlock) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

// docPages returns the text of every page for users, by path from the root of the
// repository. Decisions and the change log speak of what is no more.
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
	if len(out) == 0 {
		t.Fatal("no pages found")
	}
	return out
}

// fenceOpens is the first line of a fenced block, also behind the mark of a list.
var fenceOpens = regexp.MustCompile("^( *(?:(?:[-*]|[0-9]+\\.) +)?)```([a-z-]*)")

// docBlocks returns the fenced blocks of a page, those in lists included.
func docBlocks(page, text string) []docBlock {
	var out []docBlock
	var in *docBlock
	indent := 0
	for i, line := range strings.Split(text, "\n") {
		bare := strings.TrimLeft(line, " ")
		opens := fenceOpens.FindStringSubmatch(line)
		switch {
		case in == nil && opens != nil:
			indent = len(opens[1])
			in = &docBlock{page: page, line: i + 2, language: opens[2]}
		case in != nil && strings.HasPrefix(bare, "```"):
			out = append(out, *in)
			in = nil
		case in != nil:
			in.text += line[min(indent, len(line)-len(bare)):] + "\n"
		}
	}
	return out
}

// shellLines returns the lines of a block that a person types: all of them, or in
// a `console` block those behind a prompt. Continued lines are one line.
func shellLines(b docBlock) []string {
	var out []string
	lines := strings.Split(strings.ReplaceAll(b.text, "\\\n", " "), "\n")
	switch b.language {
	case "console":
		for _, line := range lines {
			if cmd, ok := strings.CutPrefix(line, "$ "); ok {
				out = append(out, cmd)
			}
		}
	case "", "sh", "bash", "crontab", indentedBlock, inlineBlock:
		out = lines
	}
	return out
}

// splitShell splits a line into its simple commands and those into words, as far
// as pages need it: quotes, comments, pipes, lists and redirections.
func splitShell(line string) [][]string {
	var commands [][]string
	var words []string
	var word strings.Builder
	open, skip := false, false
	endWord := func() {
		if open && !skip {
			words = append(words, word.String())
		}
		if open {
			skip = false // What a redirection goes to is no argument.
		}
		open = false
		word.Reset()
	}
	endCommand := func() {
		endWord()
		if len(words) > 0 {
			commands = append(commands, words)
		}
		words, skip = nil, false
	}
	r := []rune(line)
	for i := 0; i < len(r); i++ {
		switch c := r[i]; {
		case c == '\'' || c == '"':
			open = true
			for i++; i < len(r) && r[i] != c; i++ {
				word.WriteRune(r[i])
			}
		case c == '$' && i+1 < len(r) && r[i+1] == '(':
			open = true
			for depth := 0; i < len(r); i++ {
				word.WriteRune(r[i])
				if r[i] == '(' {
					depth++
				}
				if r[i] == ')' {
					if depth--; depth == 0 {
						break
					}
				}
			}
		case c == '#' && !open:
			endCommand()
			return commands
		case c == '|' || c == ';' || c == '(' || c == ')':
			endCommand()
		case c == '&' && i > 0 && r[i-1] == '>':
		case c == '&':
			endCommand()
		case c == '>' || c == '<':
			if s := word.String(); s == "1" || s == "2" {
				open = false
				word.Reset()
			}
			endWord()
			skip = true
		case c == ' ' || c == '\t':
			endWord()
		default:
			open = true
			word.WriteRune(c)
		}
	}
	endCommand()
	return commands
}
