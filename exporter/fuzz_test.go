package exporter_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/exporter"
)

// No name of a node, class, team, library, receiver or reason breaks a scrape, poses
// as another series, or changes the number of series: the text parses, and a
// parser gets the name back.
func FuzzLabels(f *testing.F) {
	for _, name := range []string{"a", "", "}\n\x00\xffevil 1\n", `q"uo\te`, "\u2028\u202e", "a\\n", "{a=\"b\"}", strings.Repeat("ü", 300)} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if len(name) > 4<<10 {
			t.Skip()
		}
		e := newExporterOf(t, exporter.Config{}, class.Class{Name: "a", Match: []string{"a"}, Team: "checkout"})
		e.SetTarget(locksteward.TargetState{
			Target: locksteward.Target{Name: "m"}, Up: true, Nodes: []locksteward.NodeState{{Addr: name, MaxClients: 1, MemoryMax: 1}},
		})
		e.ObserveSweep(sweep(0, lock(name, name), lock("a", name+"2", func(l *locksteward.Lock) { l.Library = name })))
		setFindings(e, "m", []locksteward.Finding{finding(name, name, locksteward.SeverityInfo, name)})
		e.CountDelivery(name, name, name)
		e.CountRelease("m", name, name)
		want := strings.ToValidUTF8(name, "\uFFFD")
		for line := range strings.Lines(scrapeText(t, e)) {
			comment := strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE ")
			if comment != line && known(comment) {
				continue
			}
			series, labels, err := sample(line)
			if err != nil || !known(series) {
				t.Fatalf("%q became the line %q: %v", name, line, err)
			}
			if node, ok := labels["node"]; ok && node != want {
				t.Errorf("node %q, want %q", node, want)
			}
		}
	})
}

// known says that a series is one of ours, or of the Go runtime.
func known(series string) bool {
	return strings.HasPrefix(series, "locksteward_") || strings.HasPrefix(series, "go_") || strings.HasPrefix(series, "process_")
}

var errSample = errors.New("is no sample")

// sample reads one line of the text format, by its specification rather than by
// the library that wrote it: name{label="value",…} number.
func sample(line string) (series string, labels map[string]string, err error) {
	end := strings.IndexAny(line, "{ ")
	if end < 1 {
		return "", nil, errSample
	}
	series, rest := line[:end], line[end:]
	labels = map[string]string{}
	if rest[0] == '{' {
		rest = rest[1:]
		for rest != "" && rest[0] != '}' {
			name, after, ok := strings.Cut(rest, `="`)
			if !ok || strings.ContainsAny(name, "\"\\{} ") {
				return "", nil, errSample
			}
			var value strings.Builder
			i := 0
			for ; i < len(after) && after[i] != '"'; i++ {
				c := after[i]
				if c == '\\' && i+1 < len(after) {
					i++
					if c = after[i]; c == 'n' {
						c = '\n'
					}
				}
				value.WriteByte(c)
			}
			if i >= len(after) {
				return "", nil, errSample
			}
			labels[name] = value.String()
			rest = strings.TrimPrefix(after[i+1:], ",")
		}
		if rest == "" {
			return "", nil, errSample
		}
		rest = rest[1:]
	}
	rest, closed := strings.CutSuffix(rest, "\n")
	if _, err := strconv.ParseFloat(strings.TrimPrefix(rest, " "), 64); err != nil || !closed {
		return "", nil, errSample
	}
	return series, labels, nil
}
