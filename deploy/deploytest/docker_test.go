package deploytest

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// stages reads the Dockerfile with BuildKit's parser; a warning of its linter fails.
func stages(t *testing.T) []instructions.Stage {
	t.Helper()
	raw := must(t, filepath.Join(root, "deploy/docker/Dockerfile"))
	file, err := parser.Parse(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range file.Warnings {
		t.Errorf("%s (%v)", w.Short, w.Location)
	}
	lint := linter.New(&linter.Config{
		Warn: func(rule, description, _, message string, _ []parser.Range) {
			t.Errorf("%s: %s (%s)", rule, message, description)
		},
	})
	all, _, err := instructions.Parse(file.AST, lint)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func last[T any](t *testing.T, s instructions.Stage) T {
	t.Helper()
	var found *T
	for _, c := range s.Commands {
		if v, ok := c.(T); ok {
			found = &v
		}
	}
	if found == nil {
		t.Fatalf("stage %q has no such instruction", s.BaseName)
	}
	return *found
}

func TestImage(t *testing.T) {
	t.Parallel()
	all := stages(t)
	final := all[len(all)-1]
	if final.BaseName != "scratch" {
		t.Errorf("the image begins with %s", final.BaseName)
	}
	if user := last[*instructions.UserCommand](t, final).User; user != "65532:65532" {
		t.Errorf("runs as %q: must be a number that is not 0, so that Kubernetes can see it", user)
	}
	labels := map[string]string{}
	for _, c := range final.Commands {
		if l, ok := c.(*instructions.LabelCommand); ok {
			for _, kv := range l.Labels {
				labels[strings.TrimPrefix(kv.Key, "org.opencontainers.image.")] = kv.Value
			}
		}
		if _, ok := c.(*instructions.RunCommand); ok {
			t.Errorf("%v in an image without a shell", c)
		}
	}
	for _, want := range []string{"title", "description", "source", "licenses", "version", "revision", "created"} {
		if labels[want] == "" {
			t.Errorf("no label %s in %v", want, labels)
		}
	}
	var build string
	for _, c := range all[0].Commands {
		if r, ok := c.(*instructions.RunCommand); ok {
			build += strings.Join(r.CmdLine, " ")
		}
	}
	for _, want := range []string{"CGO_ENABLED=0", "-trimpath", "GOOS=$TARGETOS", "GOARCH=$TARGETARCH", "-X main.version=$VERSION"} {
		if !strings.Contains(build, want) {
			t.Errorf("builds without %s: %s", want, build)
		}
	}
	if want := "golang:" + goVersion(t); !strings.HasPrefix(all[0].BaseName, want+".") {
		t.Errorf("builds with %s, the module names %s", all[0].BaseName, want)
	}
}

// goVersion is that of go.mod, less the patch.
func goVersion(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("go", "list", "-m", "-f", "{{.GoVersion}}")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.SplitN(strings.TrimSpace(string(out)), ".", 3)
	return parts[0] + "." + parts[1]
}

// What the build needs is in its context, and little else.
func TestBuildContext(t *testing.T) {
	t.Parallel()
	patterns, err := ignorefile.ReadAll(bytes.NewReader(must(t, filepath.Join(root, ".dockerignore"))))
	if err != nil {
		t.Fatal(err)
	}
	ignored, err := patternmatcher.New(patterns)
	if err != nil {
		t.Fatal(err)
	}
	absolute, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,EmbedFiles,Module,Standard", "./cmd/locksteward")
	cmd.Dir = root
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	needed := []string{"go.mod", "go.sum", "LICENSE"}
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p struct {
			Dir                 string
			GoFiles, EmbedFiles []string
			Module              *struct{ Main bool }
		}
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		if p.Module == nil || !p.Module.Main {
			continue
		}
		dir, err := filepath.Rel(absolute, p.Dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range slices.Concat(p.GoFiles, p.EmbedFiles) {
			needed = append(needed, filepath.ToSlash(filepath.Join(dir, f)))
		}
	}
	if len(needed) == 0 {
		t.Fatal("go list names no files")
	}
	for _, f := range needed {
		if out, err := ignored.MatchesOrParentMatches(f); err != nil || out {
			t.Errorf("%s is ignored, and the build needs it (%v)", f, err)
		}
	}
	for _, f := range []string{".git/config", "deploy/compose/secrets/scanner", "data/locksteward.db", "dist/SHA256SUMS", "config/testdata/x.yaml", "config/config_test.go", "docs/img/a.png"} {
		if out, err := ignored.MatchesOrParentMatches(f); err != nil || !out {
			t.Errorf("%s is sent to the builder (%v)", f, err)
		}
	}
}
