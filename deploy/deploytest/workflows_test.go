package deploytest

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

func TestWorkflows(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root, ".github/workflows/*.yml"))
	if err != nil || len(files) != 2 {
		t.Fatalf("workflows: %v, %v", files, err)
	}
	for _, file := range files {
		// Without shellcheck and pyflakes, which not every machine has.
		cmd := exec.CommandContext(t.Context(), "go", "tool", "-modfile="+filepath.Join(root, "tools/actionlint/go.mod"),
			"actionlint", "-no-color", "-shellcheck=", "-pyflakes=", file)
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("actionlint: %v\n%s", err, said)
		}
		raw := must(t, file)
		uses := regexp.MustCompile(`uses: (\S+)`).FindAllSubmatch(raw, -1)
		if len(uses) == 0 {
			t.Errorf("%s uses no action", file)
		}
		for _, u := range uses {
			if !regexp.MustCompile(`^(\./\.github/|[\w-]+/[\w-]+@v\d+)`).Match(u[1]) {
				t.Errorf("%s: %s is not pinned to a version", file, u[1])
			}
		}
		if !regexp.MustCompile(`(?m)^permissions:`).Match(raw) {
			t.Errorf("%s has no permissions of its own, so that it has all", file)
		}
	}
}
