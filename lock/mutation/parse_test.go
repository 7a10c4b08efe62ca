package mutation

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// rows is how many published defects the list has that these tests follow.
const rows = 40

// mutation is one file: a header of "name: value" lines, then for each change
//
//	@@ lock/hold.go
//	@@ old
//	whole lines that occur in the file exactly once
//	@@ new
//	what stands there instead
//
// Header: title, source (where the defect was published) and does (what the
// mutation does); tests, the names of those that must fail, and says, a regular
// expression for what they must say; optional package (./lock), race (yes) and
// timeout (60s).
type mutation struct {
	exhibit
	does    string
	pkg     string
	tests   []string
	says    *regexp.Regexp
	race    bool
	timeout time.Duration
	changes []change
}

// exhibit is what every row has.
type exhibit struct {
	id     string // B7, B7b
	row    int
	title  string
	source string
}

// absentee is a row without a mutation: title, source and why.
type absentee struct {
	exhibit
	why string
}

type change struct{ file, old, new string }

// apply returns the changed files by their paths from the root.
func (m mutation) apply(read func(name string) ([]byte, error)) (map[string]string, error) {
	files := map[string]string{}
	for _, c := range m.changes {
		text, changed := files[c.file]
		if !changed {
			raw, err := read(filepath.Join(root, filepath.FromSlash(c.file)))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.id, err)
			}
			text = string(raw)
		}
		if n := countLines(text, c.old); n != 1 {
			return nil, fmt.Errorf("%s: in %s the old text occurs %d times, want once (hint: the code has changed; let the mutation follow):\n%s",
				m.id, c.file, n, c.old)
		}
		files[c.file] = strings.Replace("\n"+text, "\n"+c.old, "\n"+c.new, 1)[1:]
	}
	return files, nil
}

// countLines returns how often some whole lines occur in text.
func countLines(text, lines string) (n int) {
	text, lines = "\n"+text, "\n"+lines
	for {
		_, behind, found := strings.Cut(text, lines)
		if !found {
			return n
		}
		n++
		text = "\n" + behind // the line's end that both share
	}
}

func mutations(t *testing.T) []mutation {
	t.Helper()
	var list []mutation
	for _, name := range glob(t, "*.mutation") {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		m, err := parseMutation(stem(name), string(raw))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		list = append(list, m)
	}
	return list
}

func absentees(t *testing.T) []absentee {
	t.Helper()
	var list []absentee
	for _, name := range glob(t, "*.absent") {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		a := absentee{exhibit: exhibit{id: id(stem(name))}}
		h, err := parseHeader(string(raw))
		if err == nil {
			a.title, a.source, a.why = h["title"], h["source"], h["why"]
			err = a.exhibit.number()
		}
		if err == nil && (a.title == "" || a.why == "" || len(h) != 3) {
			err = fmt.Errorf("want title, source and why")
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		list = append(list, a)
	}
	return list
}

// glob returns files in the order of their rows.
func glob(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// id is the file's stem without the zeros that sort it.
func id(stem string) string { return strings.Replace(stem, "B0", "B", 1) }

var idForm = regexp.MustCompile(`^B([1-9][0-9]?)[a-z]?$`)

// number reads the row out of the id.
func (e *exhibit) number() error {
	parts := idForm.FindStringSubmatch(e.id)
	if parts == nil {
		return fmt.Errorf("name: want B and two digits, perhaps a letter")
	}
	row, err := strconv.Atoi(parts[1])
	if err != nil || row > rows {
		return fmt.Errorf("name: there are %d rows", rows)
	}
	e.row = row
	return nil
}

func parseHeader(text string) (map[string]string, error) {
	h := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok || value == "" || h[name] != "" {
			return nil, fmt.Errorf("header: %q: want one %q", line, "name: value")
		}
		h[name] = value
	}
	return h, nil
}

func parseMutation(name, text string) (mutation, error) {
	head, body, ok := strings.Cut(text, "\n@@ ")
	if !ok {
		return mutation{}, fmt.Errorf("no change")
	}
	h, err := parseHeader(head)
	if err != nil {
		return mutation{}, err
	}
	m := mutation{
		exhibit: exhibit{id: id(name), title: h["title"], source: h["source"]},
		does:    h["does"], tests: strings.Fields(h["tests"]), pkg: "./lock", timeout: time.Minute,
	}
	if err := m.number(); err != nil {
		return mutation{}, err
	}
	for key, value := range h {
		switch key {
		case "title", "source", "does", "tests":
		case "says":
			m.says, err = regexp.Compile(value)
		case "package":
			m.pkg = value
		case "race":
			m.race, err = value == "yes", nil
		case "timeout":
			m.timeout, err = time.ParseDuration(value)
		default:
			err = fmt.Errorf("unknown")
		}
		if err != nil {
			return mutation{}, fmt.Errorf("header: %s: %w", key, err)
		}
	}
	if m.title == "" || m.source == "" || m.does == "" || len(m.tests) == 0 || m.says == nil {
		return mutation{}, fmt.Errorf("header: want title, source, does, tests and says")
	}
	m.changes, err = parseChanges("@@ " + body)
	return m, err
}

// parseChanges reads the changes of a mutation. Several of one file follow each
// other, each with the file's line.
func parseChanges(text string) ([]change, error) {
	var list []change
	where := "" // the part that the next lines belong to
	for line := range strings.Lines(text) {
		mark, marked := strings.CutPrefix(strings.TrimRight(line, "\n"), "@@ ")
		switch {
		case marked && mark == "old" && where == "file", marked && mark == "new" && where == "old":
			where = mark
		case marked && mark != "old" && mark != "new" && (where == "" || where == "new"):
			if !strings.HasPrefix(mark, "lock/") {
				return nil, fmt.Errorf("change of %q: only lock/ is mutated", mark)
			}
			where = "file"
			list = append(list, change{file: mark})
		case marked || where == "file":
			return nil, fmt.Errorf("change: %q: want a file, old, new", line)
		case where == "old":
			list[len(list)-1].old += line
		default:
			list[len(list)-1].new += line
		}
	}
	if where != "new" {
		return nil, fmt.Errorf("change: ends before new")
	}
	for _, c := range list {
		if strings.TrimSpace(c.old) == "" || c.old == c.new {
			return nil, fmt.Errorf("change of %s: changes nothing", c.file)
		}
	}
	return list, nil
}

func TestMutationFormat(t *testing.T) {
	t.Parallel()
	const good = "title: a\nsource: b\ndoes: c\ntests: TestX TestY/z\nsays: x|y\nrace: yes\ntimeout: 5s\n" +
		"@@ lock/a.go\n@@ old\n\tx\n@@ new\n\ty\n\tz\n@@ lock/a.go\n@@ old\nq\n@@ new\n"
	m, err := parseMutation("B07b", good)
	if err != nil {
		t.Fatal(err)
	}
	if m.id != "B7b" || m.row != 7 || !m.race || m.timeout != 5*time.Second || len(m.tests) != 2 || len(m.changes) != 2 || m.pattern() != "^TestX$|^TestY$/^z$" {
		t.Errorf("%+v, %s", m, m.pattern())
	}
	read := func(text string) func(string) ([]byte, error) {
		return func(string) ([]byte, error) { return []byte(text), nil }
	}
	if files, err := m.apply(read("\tx\np\nq\n")); err != nil || files["lock/a.go"] != "\ty\n\tz\np\n" {
		t.Errorf("%q, %v", files, err)
	}
	for _, text := range []string{"\tx\np\n", "\tx\n\tx\nq\n", "\t\tx\nq\n", ""} {
		if files, err := m.apply(read(text)); err == nil {
			t.Errorf("%q became %q", text, files)
		}
	}
	for what, bad := range map[string]string{
		"no change":     "title: a\n",
		"no says":       strings.Replace(good, "says: x|y\n", "", 1),
		"unknown":       "colour: red\n" + good,
		"twice":         "title: a\n" + good,
		"regexp":        strings.Replace(good, "x|y", "(", 1),
		"other file":    strings.Replace(good, "@@ lock/a.go", "@@ scanner/a.go", 1),
		"nothing":       strings.Replace(good, "\ty\n\tz\n", "\tx\n", 1),
		"order":         strings.Replace(good, "@@ old", "@@ new", 1),
		"ends too soon": strings.TrimSuffix(good, "@@ new\n"),
	} {
		if m, err := parseMutation("B01", bad); err == nil {
			t.Errorf("%s: %+v", what, m)
		}
	}
	for _, name := range []string{"B41", "B00", "B7", "x", "B071"} {
		if m, err := parseMutation(name, good); err == nil && name != "B7" {
			t.Errorf("%s: %+v", name, m)
		}
	}
}
