package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What pages say of make is a target of the Makefile, and what they say of go test
// names tests that there are.
func TestMakeAndGoTestInPages(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for page, text := range docPages(t) {
		for _, b := range allBlocks(page, text) {
			dir := ""
			for _, c := range docCommands(b) {
				switch {
				case c.program() == "cd":
					dir = c.words[1]
				case c.program() == "make":
					for _, target := range c.words[1:] {
						seen++
						name, _, variable := strings.Cut(target, "=")
						if variable && !regexp.MustCompile(`(?m)^`+name+` *\??=`).Match(makefile) || !variable && !regexp.MustCompile(`(?m)^`+name+`:`).Match(makefile) {
							t.Errorf("%s: %s: the Makefile has no %s", b, c.text(), name)
						}
					}
				case c.ourselves() && !c.isNamed():
					seen++
					if why := noSuchTest(t, dir, c.words[2:]); why != "" {
						t.Errorf("%s: %s: %s", b, c.text(), why)
					}
				}
			}
		}
	}
	if seen < 30 {
		t.Errorf("only %d found", seen)
	}
	if noSuchTest(t, "", []string{"./cmd/locksteward", "-run", "TestThatIsNowhere"}) == "" || noSuchTest(t, "", []string{"./nowhere"}) == "" {
		t.Error("what is no test is taken for one")
	}
}

// noSuchTest says why go test would find nothing with these arguments.
func noSuchTest(t *testing.T, in string, args []string) string {
	t.Helper()
	dir, pattern := "", "^Test"
	for i, arg := range args {
		switch {
		case strings.HasPrefix(arg, "./") || arg == ".":
			dir = strings.TrimSuffix(arg, "/...")
		case (arg == "-run" || arg == "-bench") && i+1 < len(args) && args[i+1] != "^$":
			pattern, _, _ = strings.Cut(strings.TrimPrefix(args[i+1], "/"), "/") // Behind the slash are subtests.
			if strings.HasPrefix(args[i+1], "/") {
				pattern = "^Test"
			}
		}
	}
	files, err := filepath.Glob(filepath.Join("../..", in, dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		return "no tests in " + dir
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range aTest.FindAllSubmatch(raw, -1) {
			if regexp.MustCompile(pattern).Match(m[1]) {
				return ""
			}
		}
	}
	return "no test of " + dir + " matches " + pattern
}

var aTest = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark)\w*)\(`)
