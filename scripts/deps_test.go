package scripts_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// machine is a fake computer for deps.sh: a PATH of its own.
type machine struct {
	t      *testing.T
	bin    string
	lib    string // where PostgreSQL is, beside PATH
	jar    string // where ZooKeeper is
	policy string
	calls  string
}

// newMachine makes one that is the given system and user.
func newMachine(t *testing.T, system, uid string) *machine {
	t.Helper()
	dir := t.TempDir()
	m := &machine{
		t: t, bin: filepath.Join(dir, "bin"), lib: filepath.Join(dir, "lib", "15", "bin"),
		jar: filepath.Join(dir, "zookeeper.jar"), policy: filepath.Join(dir, "policy-rc.d"), calls: filepath.Join(dir, "calls"),
	}
	for _, d := range []string{m.bin, m.lib} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, tool := range []string{"sh", "rm", "chmod", "cat"} {
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Skipf("SKIPPED: no %s on this machine", tool)
		}
		if err := os.Symlink(path, filepath.Join(m.bin, tool)); err != nil {
			t.Fatal(err)
		}
	}
	m.has("uname", "echo "+system)
	m.has("id", "echo "+uid)
	return m
}

// has gives the machine a program.
func (m *machine) has(name, body string) {
	m.t.Helper()
	m.hasIn(m.bin, name, body)
}

// hasIn gives it a program in a directory of its own.
func (m *machine) hasIn(dir, name, body string) {
	m.t.Helper()
	// A process that another test begins now would have the file open to write for a moment, and it could not be run.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil {
		m.t.Fatal(err)
	}
}

// installer gives it a package manager that notes its calls and, on "install",
// puts the programs in place.
func (m *machine) installer(name string, programs ...string) {
	m.t.Helper()
	var body strings.Builder
	body.WriteString("echo \"" + name + " $*\" >>'" + m.calls + "'\n")
	body.WriteString("if [ \"$1\" != install ]; then exit 0; fi\n")
	body.WriteString("[ -e '" + m.policy + "' ] && echo services forbidden >>'" + m.calls + "'\n")
	body.WriteString("echo \"frontend $DEBIAN_FRONTEND\" >>'" + m.calls + "'\n")
	for _, p := range programs {
		path := filepath.Join(m.bin, p)
		switch p {
		case "postgres", "initdb":
			path = filepath.Join(m.lib, p)
		case "zookeeper.jar":
			path = m.jar
		}
		body.WriteString("printf '#!/bin/sh\\necho v=7.0.15 x\\n' >'" + path + "'; chmod 755 '" + path + "'\n")
	}
	m.has(name, body.String())
}

// run runs deps.sh and returns its exit code, what it said and what it called.
func (m *machine) run(args ...string) (code int, said, calls string) {
	m.t.Helper()
	cmd := exec.CommandContext(m.t.Context(), "./deps.sh", args...)
	cmd.Env = []string{
		"PATH=" + m.bin, "DEPS_POLICY_FILE=" + m.policy, "DEPS_PYTHONS=other-python python3", "DEPS_PGBOUNCER=/nowhere/pgbouncer", "DEPS_MARIADB=/nowhere/mariadbd", "DEPS_ZOOKEEPER_PLACES=" + m.jar,
		"DEPS_POSTGRES_PLACES=/nowhere/*/bin " + filepath.Dir(filepath.Dir(m.lib)) + "/*/bin",
	}
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		m.t.Fatal(err)
	}
	noted, err := os.ReadFile(m.calls)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		m.t.Fatal(err)
	}
	return code, string(out), string(noted)
}

func (m *machine) hasRedis(version string) {
	m.t.Helper()
	m.has("redis-server", "echo 'Redis server v="+version+" sha=00000000:0'")
	m.has("redis-cli", "exit 0")
}

func TestDepsSaysNothingWhenAllIsThere(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "Linux", "1000")
	m.installer("apt-get")
	m.hasRedis("7.0.15")
	for _, p := range []string{"pgbouncer", "mariadbd", "prometheus", "promtool", "prometheus-alertmanager", "google-chrome", "clang", "python3", "java", "etcd", "etcdctl"} {
		m.has(p, "exit 0")
	}
	if err := os.WriteFile(m.jar, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"postgres", "initdb"} {
		m.hasIn(m.lib, p, "exit 0") // Not on PATH, as Debian has it.
	}
	if code, said, calls := m.run(); code != 0 || said != "" || calls != "" {
		t.Errorf("exit %d, said %q, called %q; want nothing", code, said, calls)
	}
}

// A Python without the libraries is none; Homebrew has no packages of them.
func TestDepsAsksPythonForItsLibraries(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "Linux", "0")
	m.has("python3", "exit 1")
	m.installer("apt-get", "python3")
	if code, said, calls := m.run("python"); code != 0 || !strings.Contains(calls, "python3-redis python3-dogpile.cache python3-rq") {
		t.Errorf("exit %d, said %q, called %q", code, said, calls)
	}
	mac := newMachine(t, "Darwin", "501")
	if code, said, calls := mac.run("python"); code != 0 || calls != "" {
		t.Errorf("exit %d, said %q, called %q", code, said, calls)
	}
}

// A server without the Python library for its locks is half of it.
func TestDepsWantsZooKeeperAndItsLibraries(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "Linux", "0")
	m.has("java", "exit 0")
	m.installer("apt-get", "zookeeper.jar", "python3")
	if code, said, calls := m.run("zookeeper"); code != 0 || !strings.Contains(calls, " zookeeper python3-kazoo libcurator-recipes-java\nservices forbidden\n") {
		t.Errorf("exit %d, said %q, called %q", code, said, calls)
	}
	mac := newMachine(t, "Darwin", "501")
	mac.has("java", "exit 0")
	mac.installer("brew", "zookeeper.jar")
	if code, said, calls := mac.run("zookeeper"); code != 0 || !strings.Contains(calls, "brew install --quiet zookeeper\n") {
		t.Errorf("exit %d, said %q, called %q", code, said, calls)
	}
}

// The server, its command line and the Python library come together.
func TestDepsWantsAllOfEtcd(t *testing.T) {
	t.Parallel()
	for name, arrange := range map[string]func(*machine){
		"nothing":    func(*machine) {},
		"no client":  func(m *machine) { m.has("etcd", "exit 0"); m.has("python3", "exit 0") },
		"no library": func(m *machine) { m.has("etcd", "exit 0"); m.has("etcdctl", "exit 0"); m.has("python3", "exit 1") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, "Linux", "0")
			arrange(m)
			m.installer("apt-get", "etcd", "etcdctl", "python3")
			if code, said, calls := m.run("etcd"); code != 0 || !strings.Contains(calls, " etcd-server etcd-client python3-etcd3\nservices forbidden\n") {
				t.Errorf("exit %d, said %q, called %q", code, said, calls)
			}
		})
	}
}

func TestDepsInstallsAsRoot(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "Linux", "0")
	m.installer("apt-get", "redis-server", "redis-cli", "promtool", "prometheus", "cc", "postgres", "initdb")
	code, said, calls := m.run("redis", "postgres", "prometheus", "cc")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, said)
	}
	for _, want := range []string{
		"apt-get update", "apt-get install -y", "--no-install-recommends",
		" redis-server redis-tools postgresql prometheus gcc libc6-dev\n", "services forbidden", "frontend noninteractive",
	} {
		if !strings.Contains(calls, want) {
			t.Errorf("called %q, want %q in it", calls, want)
		}
	}
	if _, err := os.Stat(m.policy); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the ban on services is left behind: %v", err)
	}
}

func TestDepsInstallsOnlyWhatIsMissing(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "Linux", "0")
	m.hasRedis("7.2.0")
	m.installer("apt-get", "promtool", "prometheus")
	if err := os.WriteFile(m.policy, []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, said, calls := m.run("redis", "prometheus")
	if code != 0 || strings.Contains(calls, "redis") {
		t.Errorf("exit %d, said %q, called %q", code, said, calls)
	}
	if got, err := os.ReadFile(m.policy); err != nil || string(got) != "theirs" {
		t.Errorf("a policy that was there is now %q, %v", got, err)
	}
}

// The client alone brings no server.
func TestDepsWantsTheServerOfPostgreSQL(t *testing.T) {
	t.Parallel()
	for name, arrange := range map[string]func(*machine){
		"nothing":         func(*machine) {},
		"client":          func(m *machine) { m.has("psql", "exit 0"); m.hasIn(m.lib, "pg_dump", "exit 0") },
		"no initdb":       func(m *machine) { m.has("postgres", "exit 0") },
		"in pieces apart": func(m *machine) { m.has("postgres", "exit 0"); m.hasIn(m.lib, "initdb", "exit 0") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, "Linux", "0")
			arrange(m)
			m.installer("apt-get", "postgres", "initdb")
			code, said, calls := m.run("postgres")
			if code != 0 || !strings.Contains(calls, " postgresql\nservices forbidden\n") {
				t.Errorf("exit %d, said %q, called %q; want the server installed and not started", code, said, calls)
			}
		})
	}
	m := newMachine(t, "Linux", "1000")
	m.has("postgres", "exit 0")
	m.has("initdb", "exit 0")
	if code, said, _ := m.run("postgres"); code != 0 || said != "" {
		t.Errorf("with a server on PATH: exit %d, said %q", code, said)
	}
}

func TestDepsWithoutTheRightPrintsOneCommand(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "Linux", "1000")
	m.installer("apt-get")
	m.has("sudo", "echo sudo >>'"+m.calls+"'")
	code, said, calls := m.run("redis", "cc")
	if code != 1 || calls != "" {
		t.Errorf("exit %d, called %q; want 1 and nothing called", code, calls)
	}
	want := "sudo apt-get update && sudo apt-get install -y --no-install-recommends redis-server redis-tools gcc libc6-dev\n"
	if !strings.Contains(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
}

func TestDepsOnMacOS(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "Darwin", "501")
	m.installer("brew", "redis-server", "redis-cli", "google-chrome", "postgres", "initdb")
	code, said, calls := m.run("redis", "postgres", "chromium")
	if code != 0 || !strings.Contains(calls, "brew install --quiet redis\n") || !strings.Contains(calls, "brew install --quiet postgresql\n") {
		t.Errorf("exit %d, said %q, called %q", code, said, calls)
	}
	// A Chrome that this machine has outside PATH counts as there.
	if _, err := os.Stat("/Applications/Google Chrome.app"); err != nil && !strings.Contains(calls, "--cask google-chrome\n") {
		t.Errorf("called %q, want Chrome installed", calls)
	}

	bare := newMachine(t, "Darwin", "501")
	if code, said, _ := bare.run("redis"); code != 1 || !strings.Contains(said, "brew install redis\n") {
		t.Errorf("without Homebrew: exit %d, said %q", code, said)
	}
}

func TestDepsFails(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		arrange func(*machine)
		args    []string
		code    int
		want    string
	}{
		"unknown argument":     {func(*machine) {}, []string{"mysql"}, 2, "unknown dependency 'mysql'"},
		"nothing to install":   {func(*machine) {}, []string{"cc"}, 1, "package manager"},
		"installed nothing":    {func(m *machine) { m.installer("apt-get") }, []string{"cc"}, 1, "still missing after the installation: cc"},
		"installation refused": {func(m *machine) { m.has("apt-get", "echo no such package; exit 100") }, []string{"cc"}, 100, "no such package"},
		"old redis":            {func(m *machine) { m.hasRedis("6.2.6") }, []string{"redis"}, 1, "6.2.6 is too old"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, "Linux", "0")
			tc.arrange(m)
			code, said, _ := m.run(tc.args...)
			if code != tc.code || !strings.Contains(said, tc.want) {
				t.Errorf("exit %d, said %q; want %d and %q", code, said, tc.code, tc.want)
			}
			if _, err := os.Stat(m.policy); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the ban on services is left behind: %v", err)
			}
		})
	}
}
