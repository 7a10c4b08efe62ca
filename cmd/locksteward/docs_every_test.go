package main

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// Every command of every page is run: by the scenes of this package, by a test that
// is named and that runs this very command, or it cannot be run here, which
// docs/limits.md says.
func TestEveryCommandInPagesIsRun(t *testing.T) {
	t.Parallel()
	limits, err := os.ReadFile("../../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	pages := docPages(t)
	ran := commandsOfScripts(t)
	var later, behind []docCommand
	count := map[string]int{}
	used := map[string]bool{}
	for _, page := range slices.Sorted(maps.Keys(pages)) {
		for _, b := range allBlocks(page, pages[page]) {
			if why := hides(b); why != "" {
				t.Errorf("%s: %s", b, why)
			}
			for _, c := range docCommands(b) {
				e, reason := c.away()
				_, own := ownArgs(c.words)
				switch {
				case b.language == "": // A drawing or an output.
				case c.isNamed():
					used[c.text()] = true
				case reason != "":
					count["not here"]++
					used[c.program()] = true
					if !strings.Contains(string(limits), "`"+c.program()+"`") {
						t.Errorf("%s: %s: %s, and docs/limits.md does not name `%s`", b, c.text(), reason, c.program())
					}
					if own {
						behind = append(behind, c)
					}
				case e.test != "":
					count["by a test that is named"]++
					used[e.page+e.begins] = true
					if why := e.runs(t, c); why != "" {
						t.Errorf("%s: %s: %s", b, c.text(), why)
					}
				case c.ourselves():
					count["make and go test"]++ // TestMakeAndGoTestInPages.
				case c.here():
					count["run"]++
					if own {
						ran.add(c.words)
					}
				case c.program() == "cd": // For what stands behind it.
				case own && b.language == inlineBlock:
					later = append(later, c)
				default:
					t.Errorf("%s: nobody runs: %s\n\thint: give the page a scene in docs_scenes_test.go", b, c.text())
				}
			}
		}
	}
	later = slices.DeleteFunc(later, func(c docCommand) bool {
		args, _ := ownArgs(c.words)
		return ran.isName(args) // That there is one of this name TestCommandsInSentencesExist sees.
	})
	count["in a sentence, by a script or a scene"] = len(later)
	for _, c := range behind {
		args, _ := ownArgs(c.words)
		if why := ran.covers(args); why != "" {
			t.Errorf("%s: %s: %s", c.docBlock, c.text(), why)
		}
	}
	for _, c := range later {
		for _, args := range alternatives(c.text()) {
			if why := ran.covers(args); why != "" {
				t.Errorf("%s: %s: %s", c.docBlock, c.text(), why)
			}
		}
	}
	for _, c := range slices.Concat(slices.Collect(maps.Keys(notHere)), slices.Collect(maps.Keys(namedOnly))) {
		if !used[c] {
			t.Errorf("notHere or namedOnly has %q, and no page", c)
		}
	}
	for _, e := range runElsewhere {
		if !used[e.page+e.begins] {
			t.Errorf("runElsewhere has %v, and the page no such command", e)
		}
	}
	t.Logf("commands: %v", count)
	if count["run"] == 0 {
		t.Error("no command is run: the pages are not read")
	}
	for _, b := range []docBlock{
		{page: "docs/faq.md", language: "sh", text: "locksteward scan --redis redis://127.0.0.1:6379\n"},
		{page: "docs/dialects/README.md", language: indentedBlock, text: "redis-cli DEL lock\n"},
		{page: "docs/release.md", language: "sh", text: "redis-cli DEL lock\n"},
	} {
		c := docCommands(b)[0]
		if e, reason := c.away(); c.here() || e.test != "" || reason != "" {
			t.Errorf("somebody runs %s of %s", c.text(), b.page)
		}
	}
	if hides(docBlock{language: "zsh", text: "ls\n"}) == "" || hides(docBlock{text: "redis-cli GET a\n"}) == "" {
		t.Error("commands in a block of another language are passed over")
	}
}

// noShell are the languages of blocks that nobody types into a shell.
var noShell = []string{"yaml", "json", "jsonl", "http", "go", "python", "lua", "sql", "cel", "promql", "systemd", "systemd-timer", "nginx"}

// hides says of a block why its commands would not be seen.
func hides(b docBlock) string {
	switch {
	case slices.Contains(noShell, b.language), b.language != "" && b.language != "text" && len(docCommands(b)) > 0:
		return ""
	case b.language != "" && b.language != "text":
		return "no commands in a block of " + b.language
	}
	for line := range strings.Lines(b.text) {
		if startsProgram.MatchString(line) {
			return strings.TrimSpace(line) + "\n\thint: commands stand in a block of sh or console"
		}
	}
	return ""
}
