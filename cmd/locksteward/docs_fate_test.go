package main

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// notHere says of a program why no test runs what pages have people do with it;
// docs/limits.md says the same.
var notHere = map[string]string{
	"docker":    "no container engine",
	"kubectl":   "no Kubernetes",
	"helm":      "no Kubernetes; what is installed is rendered by deploy/deploytest",
	"systemctl": "no systemd that runs",
	"runuser":   "no account of the unit's; the command behind it is run by store.txtar",
	"mvn":       "asks a repository on the internet; TestSnippets in lock has a stand-in for what it brings",
	"gh":        "asks a service on the internet",
	"$EDITOR":   "a person types in it",
}

// namedOnly are spans of a sentence that name a program and are not what anybody
// would type as they stand.
var namedOnly = map[string]string{
	"redis-cli -x":              "an option of it",
	"redis-cli DEL":             "what nobody should do",
	"redis-cli CLUSTER KEYSLOT": "a command of the server, to compare with",
	"kill -9":                   "what a process may suffer",
	"chmod 600":                 "a mode",
	"systemd-analyze security":  "run by TestUnitIsNarrow in deploy/deploytest",
	"systemd-analyze verify":    "run by TestUnitVerifies in deploy/deploytest",
	"go list":                   "what a list is equal to",
	"go test ./lock/... -run …": "the form of a command",
}

// elsewhere is a command that a test of another package, or of another file, runs.
type elsewhere struct{ page, begins, pkg, test string }

// runElsewhere are those commands, by their beginning or that of their block. The
// test reads the page, or its file has the program and each flag.
var runElsewhere = []elsewhere{
	{"docs/exec.md", "17 3 * * * locksteward exec", "cmd/locksteward", "TestExecDocsCron"},
	{"docs/exec.md", "locksteward exec --redis redis://127.0.0.1:6379 --key lock:report ", "cmd/locksteward", "TestExecDocsDeploy"},
	{"docs/exec.md", "#!/bin/sh\n", "cmd/locksteward", "TestExecDocsDeploy"},
	{"docs/wire-format.md", "", "lock", "TestWireFormatExample"},
	{"docs/store.md", "pg_dump ", "store", "TestBackupOfPostgres"},
	{"docs/store.md", "pg_restore ", "store", "TestBackupOfPostgres"},
	{"docs/acl.md", "locksteward unlock --print", "cmd/locksteward/testdata/script", "unlock.txtar"},
	{"grafana/README.md", "promtool test rules", "Makefile", "lint-alerts"},
	{"docs/deploy.md", "systemd-sysusers ", "deploy/deploytest", "TestUnitFilesFitTogether"},
	{"docs/deploy.md", "systemd-tmpfiles ", "deploy/deploytest", "TestUnitFilesFitTogether"},
}

// docCommand is one simple command of a page.
type docCommand struct {
	docBlock
	words []string
}

func (c docCommand) text() string { return strings.Join(c.words, " ") }

// oneOf is how sentences write words of which one is to be taken.
var oneOf = regexp.MustCompile(`([a-z])\|(-*[a-z])`)

// docCommands returns what a block has people type, as simple commands.
func docCommands(b docBlock) []docCommand {
	var out []docCommand
	for _, line := range shellLines(b) {
		if b.language == inlineBlock {
			line = oneOf.ReplaceAllString(line, "${1}'|'${2}")
		}
		for _, words := range splitShell(line) {
			out = append(out, docCommand{b, words})
		}
	}
	return out
}

// program is what a command starts: the first word that is no assignment.
func (c docCommand) program() string {
	for _, w := range c.words {
		if !assignment.MatchString(w) {
			return w
		}
	}
	return ""
}

// away says where or why not a command is run, if it is not by this package's
// scenes: the test, or the reason.
func (c docCommand) away() (e elsewhere, reason string) {
	for _, e := range runElsewhere {
		if e.page == c.page && (c.language != inlineBlock || e.begins != "") &&
			(strings.HasPrefix(c.docBlock.text, e.begins) || strings.HasPrefix(c.text()+" ", e.begins)) {
			return e, ""
		}
	}
	return elsewhere{}, notHere[c.program()]
}

// ourselves reports whether a command runs the tests, or what CI runs beside them.
func (c docCommand) ourselves() bool {
	return c.program() == "make" || c.program() == "go" && len(c.words) > 1 && c.words[1] == "test"
}

// isNamed reports whether it is only the name of a command.
func (c docCommand) isNamed() bool { return c.language == inlineBlock && namedOnly[c.text()] != "" }

// here reports whether the tests of this package run a command as the page has it.
func (c docCommand) here() bool {
	if e, reason := c.away(); e.test != "" || reason != "" || c.ourselves() || c.isNamed() {
		return false
	}
	switch {
	case path.Dir(c.page) == "docs/dialects" && path.Base(c.page) != "README.md" && c.program() == "redis-cli":
		return true // TestByHandOfDialects fails for each that it does not run.
	case c.language == "console" && slices.Contains(runInDocs, c.page):
		return true
	}
	_, ok := sceneOf(c.docBlock)
	return ok
}

// runs says why the test does not run the command.
func (e elsewhere) runs(t *testing.T, c docCommand) string {
	t.Helper()
	if e.pkg == "Makefile" {
		raw, err := os.ReadFile("../../Makefile")
		_, recipe, ok := strings.Cut(string(raw), "\n"+e.test+":")
		recipe, _, _ = strings.Cut(recipe, "\n\n")
		if err != nil || !ok || !strings.Contains(recipe, e.begins) {
			return "make " + e.test + " does not run " + e.begins
		}
		return ""
	}
	if path.Ext(e.test) == ".txtar" {
		raw, err := os.ReadFile(filepath.Join("../..", e.pkg, e.test))
		for _, w := range c.words {
			if strings.HasPrefix(w, "-") && !strings.Contains(string(raw), w) {
				return e.test + " does not use " + w
			}
		}
		return map[bool]string{true: "there is no " + e.test}[err != nil]
	}
	files, err := filepath.Glob(filepath.Join("../..", e.pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		if !strings.Contains(text, "\nfunc "+e.test+"(t *testing.T)") {
			continue
		}
		if strings.Contains(text, e.page) {
			return "" // It reads the page.
		}
		if !strings.Contains(text, c.program()) {
			return e.test + " does not run " + c.program()
		}
		for _, w := range c.words {
			if flag, _, _ := strings.Cut(w, "="); strings.HasPrefix(w, "-") && !strings.Contains(text, `"`+flag) {
				return e.test + " does not use " + flag
			}
		}
		return ""
	}
	return e.pkg + " has no test " + e.test
}
