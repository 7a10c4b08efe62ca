package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What pages that need more than a server have people type is run, and each line of
// output that they show in a console block is compared.
func TestCommandsInPagesRunInScenes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts servers")
	}
	for _, program := range []string{"curl", "openssl", "promtool"} {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatal(err)
			}
			t.Skipf("SKIPPED, NOTHING TESTED: %v", err)
		}
	}
	pages := docPages(t)
	for _, group := range docGroups {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			bed := group.bed(t)
			for i := range group.scenes {
				scene := &group.scenes[i]
				t.Run(strings.ReplaceAll(scene.page, "/", "_"), func(t *testing.T) {
					bed.play(t, scene, pages[scene.page])
				})
			}
		})
	}
}

// sceneOf returns the scene that runs a block, if one does. What is in no language
// is a drawing or an output.
func sceneOf(b docBlock) (*docScene, bool) {
	if b.language == "" || b.language == "console" && slices.Contains(runInDocs, b.page) {
		return nil, false
	}
	for _, group := range docGroups {
		for i, s := range group.scenes {
			if span := b.language == inlineBlock && strings.HasPrefix(b.text, "locksteward "); span != s.spans {
				continue // In sentences our own commands stand mostly as names: TestEveryCommandInPagesIsRun.
			}
			if s.page == b.page && strings.Contains(b.text, s.part) {
				return &group.scenes[i], true
			}
		}
	}
	return nil, false
}

// play runs the blocks of a page that are the scene's.
func (b *docBed) play(t *testing.T, s *docScene, text string) {
	t.Helper()
	b.ids = map[string]string{}
	if s.first != nil {
		s.first(b, t)
	}
	ran := 0
	for _, block := range allBlocks(s.page, text) {
		if of, ok := sceneOf(block); ok && of == s {
			ran += b.follow(t, s, block)
		}
	}
	if ran == 0 {
		t.Errorf("%s has no command for its scene %q", s.page, s.part)
	}
}

// stays is a line that changes the shell for those behind it.
var stays = regexp.MustCompile(`^(umask [0-7]+|[A-Z_]+=('[^']*'|\S*))$`)

// follow runs the commands of a block and returns how many lines they were.
func (b *docBed) follow(t *testing.T, s *docScene, block docBlock) int {
	t.Helper()
	ran := 0
	before := "" // What lines before have changed in the shell.
	for _, step := range steps(block) {
		typed := b.kept(t, block, step.line)
		if typed == "" {
			continue
		}
		around(t, b, s.before, typed)
		line := before + b.real(swap(typed, s.swap))
		keys := s.typed[prefixOf(typed, s.typed)]
		ran++
		switch {
		case stays.MatchString(typed):
			before += typed + "; "
		case strings.HasPrefix(typed, "locksteward run "):
			agent := b.start(t, line)
			defer stop(agent)
		case keys != nil:
			b.atTerminal(t, block, line, keys)
		default:
			out := b.shell(t, block, line)
			if block.language == "console" {
				b.compare(t, block, line, step.want, out)
			}
		}
		around(t, b, s.after, typed)
	}
	return ran
}

type docStep struct{ line, want string }

// steps returns the lines of a block that are typed, with what the page shows below.
func steps(b docBlock) []docStep {
	var out []docStep
	if b.language == "console" {
		parts := strings.Split("\n"+strings.ReplaceAll(b.text, "\\\n", " "), "\n$ ")
		for _, part := range parts[1:] {
			line, want, _ := strings.Cut(part, "\n")
			out = append(out, docStep{line, want})
		}
		return out
	}
	for _, line := range shellLines(b) {
		out = append(out, docStep{line: line})
	}
	return out
}

// kept returns of a line what is run here: nothing of a comment, and of commands
// that are joined with && those that no other test runs and that can be run.
func (b *docBed) kept(t *testing.T, block docBlock, line string) string {
	t.Helper()
	var here []string
	for part := range strings.SplitSeq(line, " && ") {
		own, other := 0, 0
		for _, words := range splitShell(part) {
			if (docCommand{block, words}).here() {
				own++
			} else {
				other++
			}
		}
		if own > 0 && other > 0 {
			t.Fatalf("%s: %s\nhint: what cannot be run here stands in a line of its own, or behind &&", block, line)
		}
		if own > 0 {
			here = append(here, strings.TrimSpace(part))
		}
	}
	return strings.Join(here, " && ")
}

func prefixOf[V any](line string, of map[string]V) string {
	for begin := range of {
		if strings.HasPrefix(line+" ", begin) {
			return begin
		}
	}
	return ""
}

func around(t *testing.T, b *docBed, of step, line string) {
	t.Helper()
	if f := of[prefixOf(line, of)]; f != nil {
		f(b, t)
	}
}

// sh runs what a page presumes, or what it says in words.
func (b *docBed) sh(t *testing.T, line string) string {
	t.Helper()
	return b.shell(t, docBlock{page: "before the page"}, "set -e; "+line)
}

// Every scene is of a page, each page of one place, and the keys of what runs around
// commands are beginnings of commands.
func TestScenesAreOfPages(t *testing.T) {
	t.Parallel()
	pages := docPages(t)
	for _, group := range docGroups {
		for i := range group.scenes {
			s := &group.scenes[i]
			if pages[s.page] == "" {
				t.Errorf("there is no page %s", s.page)
			}
			var lines []string
			for _, block := range allBlocks(s.page, pages[s.page]) {
				if of, ok := sceneOf(block); ok && of == s {
					for _, step := range steps(block) {
						lines = append(lines, step.line)
					}
				}
			}
			for _, key := range slices.Concat(slices.Collect(maps.Keys(s.before)), slices.Collect(maps.Keys(s.after)), slices.Collect(maps.Keys(s.typed))) {
				if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line+" ", key) }) {
					t.Errorf("%s: no command begins with %q", s.page, key)
				}
			}
			for j := 0; j < len(s.swap); j += 2 {
				if !strings.Contains(s.page, "runbooks") && !strings.Contains(fmt.Sprint(lines), s.swap[j]) {
					t.Errorf("%s: no command has %q", s.page, s.swap[j])
				}
			}
		}
	}
}
