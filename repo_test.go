package locksteward_test

import (
	"bytes"
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/locksteward/locksteward"

// source is one Go file of the main module.
type source struct {
	path string // from the root, with slashes
	dir  string
	test bool
	file *ast.File
	set  *token.FileSet
	raw  []byte
}

// sources parses every Go file of the main module once.
func sources(t *testing.T) []source {
	t.Helper()
	var out []source
	walk(t, func(p string) {
		if !strings.HasSuffix(p, ".go") {
			return
		}
		raw, err := os.ReadFile(filepath.FromSlash(p))
		if err != nil {
			t.Fatal(err)
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, p, raw, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, source{
			path: p, dir: path.Dir(p), test: strings.HasSuffix(p, "_test.go"),
			file: file, set: set, raw: raw,
		})
	})
	return out
}

// walk calls visit with every file of the main module, by its path from the root.
func walk(t *testing.T, visit func(p string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			nested := p != "." && exists(filepath.Join(p, "go.mod"))
			if nested || p != "." && strings.HasPrefix(d.Name(), ".") || d.Name() == "bin" || d.Name() == "data" {
				return fs.SkipDir
			}
			return nil
		}
		if d.Name() == ".git" { // of a git worktree
			return nil
		}
		visit(filepath.ToSlash(p))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func exists(p string) bool {
	_, err := os.Stat(p)
	return err == nil
}

// floors are the packages of the tree from the bottom up. A package imports those of lower floors, and of its own floor
// unless that ends in "!": the components there know nothing of each other. Types that they share are in lower floors.
var floors = []string{
	`\.`,
	`catalogue|lock(/.*)?|internal/(plural|respcheck)`,
	`api|class|internal/(credfile|liveness|loopback|pace|redisproc|reload|stacks|suggest|users)`,
	`source`,
	`rules/expr|source/(memory|sql|etcd|zookeeper|redis/(connect|formats))|internal/(report|signin|oidclogin)`,
	`source/redis`,
	`scanner|rules|exporter|alert|release(/model)?|console|source/redis/releaser!`,
	`store`,
	`source/redis/(acl|doctor)|internal/(access|audit|clockcheck|cluster(/remote)?|credentials|execlock|heartbeat|initcfg|lockhistory|lockstore|lockview|recording|silences|unlock|apiclient)`,
	`config`,
	`internal/(targets|scan|storehealth|targetsources)`,
	`internal/(backend|notifications)`,
	`internal/agent`,
	`internal/(demo(/.*)?|testkit/.*)|test/.*`,
	`cmd/locksteward`,
}

// outside names the packages that may use a library directly; others go through
// them. A name that ends in /... is of all packages below, too.
var outside = map[string][]string{
	"github.com/redis/go-redis":              {"lock/...", "source/redis/...", "internal/testkit/...", "internal/demo/...", "internal/execlock"},
	"github.com/prometheus/client_golang":    {"exporter", "lock/lockprom"},
	"github.com/prometheus/exporter-toolkit": {"exporter"},
	"github.com/jackc/pgx":                   {"internal/testkit/...", "store", "source/sql"},
	"github.com/go-sql-driver/mysql":         {"internal/testkit/...", "source/sql"},
	"github.com/go-zookeeper/zk":             {"internal/testkit/testzk", "source/zookeeper"},
	"modernc.org/sqlite":                     {"store"},
	"go.etcd.io/etcd":                        {"source/etcd", "internal/testkit/..."},
	"google.golang.org/grpc":                 {"source/etcd"},
	"golang.org/x/net":                       {"internal/testkit/..."},
	"github.com/spf13/cobra":                 {"cmd/locksteward"},
	"cel.dev/cel-go":                         {"rules/expr"},
	"gopkg.in/yaml.v3":                       {"config", "internal/users", "cmd/locksteward"}, // the last for --output yaml
	"github.com/wneessen/go-mail":            {"alert"},
	"github.com/robfig/cron":                 {"scanner"},
	"github.com/alicebob/miniredis":          {"internal/demo/..."},
	"github.com/coreos/go-oidc":              {"internal/oidclogin"},
	"golang.org/x/oauth2":                    {"internal/oidclogin"},
}

// mayUse says whether one of users is the package dir.
func mayUse(users []string, dir string) bool {
	return slices.ContainsFunc(users, func(user string) bool {
		below, all := strings.CutSuffix(user, "/...")
		return dir == below || all && strings.HasPrefix(dir, below+"/")
	})
}

// floorOf is the floor of a package, and whether its packages import each other.
func floorOf(dir string) (floor int, open bool) {
	for i, f := range floors {
		pattern, closed := strings.CutSuffix(f, "!")
		if regexp.MustCompile(`^(` + pattern + `)$`).MatchString(dir) {
			return i, !closed
		}
	}
	return -1, false
}

func TestFloors(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		mine, open := floorOf(s.dir)
		if mine < 0 {
			t.Errorf("%s: package %s is on no floor of repo_test.go", s.path, s.dir)
			continue
		}
		for _, spec := range s.file.Imports {
			name := strings.Trim(spec.Path.Value, `"`)
			if rel, ours := strings.CutPrefix(name, module); ours {
				rel = cmp.Or(strings.TrimPrefix(rel, "/"), ".")
				if floor, _ := floorOf(rel); floor > mine || floor == mine && !open {
					t.Errorf("%s imports %s, which is on a higher floor, or a component of the same one", s.path, rel)
				}
			}
			for library, users := range outside {
				if (name == library || strings.HasPrefix(name, library+"/")) && !mayUse(users, s.dir) {
					t.Errorf("%s imports %s: only %v may", s.path, name, users)
				}
			}
		}
	}
}

func TestRulesArePure(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.dir != "rules" && s.dir != "rules/expr" || s.test {
			continue
		}
		for _, spec := range s.file.Imports {
			name := strings.Trim(spec.Path.Value, `"`)
			if slices.Contains([]string{"os", "net", "net/http", "io/fs", "go.uber.org/zap"}, name) {
				t.Errorf("%s imports %s: rules read no clock, network or file", s.path, name)
			}
		}
		if bytes.Contains(s.raw, []byte("time.Now(")) {
			t.Errorf("%s reads the clock: rules get the time in their input", s.path)
		}
	}
}

func TestOnePackageCommentEach(t *testing.T) {
	t.Parallel()
	comments := map[string][]string{}
	for _, s := range sources(t) {
		if s.test || strings.Contains(s.path, "/testdata/") {
			continue
		}
		if _, seen := comments[s.dir]; !seen {
			comments[s.dir] = nil
		}
		if s.file.Doc != nil {
			comments[s.dir] = append(comments[s.dir], s.path)
		}
	}
	for dir, files := range comments {
		if len(files) != 1 {
			t.Errorf("%s: %d package comments %v, want exactly one", dir, len(files), files)
		}
	}
}

func TestFilesStaySmall(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if lines := bytes.Count(s.raw, []byte("\n")); lines > 600 {
			t.Errorf("%s: %d lines, want at most 600", s.path, lines)
		}
	}
}

// forbidden are calls that hide state or end the program from the wrong place.
var forbidden = []struct {
	text, why string
	allowed   func(s source) bool
}{
	{"os.Exit(", "only main ends the program", func(s source) bool {
		return s.path == "cmd/locksteward/main.go" || s.test
	}},
	{"http.DefaultServeMux", "each listener has its own mux", func(source) bool { return false }},
	{"zap.L()", "loggers are passed in", func(source) bool { return false }},
	{"zap.S()", "loggers are passed in", func(source) bool { return false }},
	{"log.Fatal", "return the error", func(source) bool { return false }},
	{"time.Sleep(", "await an event", func(s source) bool {
		return !s.test && s.dir == "internal/testkit/testredis" || bytes.Contains(s.raw, []byte("testing/synctest"))
	}},
}

func TestForbiddenCalls(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.path == "repo_test.go" {
			continue
		}
		for _, f := range forbidden {
			if bytes.Contains(s.raw, []byte(f.text)) && !f.allowed(s) {
				t.Errorf("%s uses %s: %s", s.path, f.text, f.why)
			}
		}
	}
}

func TestScriptsSayTheirContract(t *testing.T) {
	t.Parallel()
	found := 0
	walk(t, func(p string) {
		if !strings.HasSuffix(p, ".lua") {
			return
		}
		found++
		raw, err := os.ReadFile(filepath.FromSlash(p))
		if err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(string(raw), "\nlocal ")
		for _, word := range []string{"KEYS", "ARGV", "Returns"} {
			if !strings.HasPrefix(string(raw), "--") || !strings.Contains(head, word) {
				t.Errorf("%s: the opening comment does not say %s", p, word)
			}
		}
	})
	if found == 0 {
		t.Error("no Lua scripts found: is the test run from the root?")
	}
}
