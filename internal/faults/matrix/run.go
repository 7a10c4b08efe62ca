package matrix

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/locksteward/locksteward/internal/faults"
)

// Run runs exactly tests, which are all of one package, under the race detector
// in the module at root, and returns their outcomes by Test.ID. What the tests
// of a failure print goes to log. An error is one of go test itself, say of a
// package that does not compile.
func Run(ctx context.Context, root string, tests []Test, log io.Writer) (map[string]string, error) {
	if len(tests) == 0 {
		return nil, nil
	}
	pkg := "./" + tests[0].Package()
	var names []string
	for _, t := range tests {
		names = append(names, t.Name)
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-json", "-race", "-count=1", "-timeout=15m",
		"-run", "^("+strings.Join(names, "|")+")$", pkg)
	cmd.Dir = root
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	heard := listen(out, log)
	err = cmd.Wait()
	outcomes, any := map[string]string{}, false
	for _, t := range tests {
		o := heard.outcome(t)
		outcomes[t.ID()] = o
		any = any || o != NotRun
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && any {
		err = nil // that of a test, which its outcome tells
	}
	if err != nil {
		return outcomes, fmt.Errorf("go test %s: %w\n%s%s", pkg, err, stderr.String(), heard.build.String())
	}
	return outcomes, nil
}

// heard is what go test -json said, by name of the top-level test.
type heard struct {
	ends  map[string]string
	rows  map[string][]int
	build strings.Builder
}

// event is one line of go test -json (go doc test2json).
type event struct {
	Action, Test, Output, Key, Value string
}

func listen(r io.Reader, log io.Writer) *heard {
	h := &heard{ends: map[string]string{}, rows: map[string][]int{}}
	said := map[string]*strings.Builder{}
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if json.Unmarshal(line, &e) == nil {
			h.take(e, said, log)
		}
		if err != nil {
			return h
		}
	}
}

func (h *heard) take(e event, said map[string]*strings.Builder, log io.Writer) {
	top, _, sub := strings.Cut(e.Test, "/")
	switch e.Action {
	case "attr":
		if n, err := strconv.Atoi(e.Value); err == nil && e.Key == faults.Attr {
			h.rows[top] = append(h.rows[top], n)
		}
	case "output", "build-output":
		if e.Test == "" {
			h.build.WriteString(e.Output)
			return
		}
		if said[top] == nil {
			said[top] = &strings.Builder{}
		}
		said[top].WriteString(e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" || sub {
			return
		}
		h.ends[top] = e.Action
		if e.Action == "fail" && said[top] != nil {
			fmt.Fprint(log, said[top].String())
		}
		delete(said, top)
	}
}

// outcome is that of t; who passed without saying which rows it covers was cut
// short, by a skip in a subtest for one.
func (h *heard) outcome(t Test) string {
	switch h.ends[t.Name] {
	case "pass":
		for _, c := range t.Rows {
			if !slices.Contains(h.rows[t.Name], c.Row) {
				return Skipped
			}
		}
		return Passed
	case "fail":
		return Failed
	case "skip":
		return Skipped
	}
	return NotRun
}
