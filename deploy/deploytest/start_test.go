package deploytest

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
)

// sweeps is true once the agent has seen its target.
func (m *machine) sweeps(target string) {
	m.t.Helper()
	m.until("the agent has swept "+target, func() (string, bool) {
		said, _ := fetch(fmt.Sprintf("http://127.0.0.1:%d/metrics", m.port))
		return said, strings.Contains(said, fmt.Sprintf("locksteward_target_up{target=%q} 1", target))
	})
}

// The image's own command line, on a file system like the image's.
func TestImageStarts(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	all := stages(t)
	final := all[len(all)-1]
	argv := append(last[*instructions.EntrypointCommand](t, final).CmdLine, last[*instructions.CmdCommand](t, final).CmdLine...)
	m.cwd = last[*instructions.WorkdirCommand](t, final).Path
	port := redis(t)
	m.put("/etc/locksteward/locksteward.yaml", fmt.Sprintf("targets: [{name: main, url: 'redis://redis:%d'}]\n", port), 0o640)
	m.start(argv...)
	m.sweeps("main")
	// What the default configuration writes lies in the image's one writable folder.
	if _, err := exec.Command("test", "-s", m.path("/var/lib/locksteward/data/locksteward.db")).Output(); err != nil {
		t.Errorf("no store in the volume: %v", err)
	}
	health := last[*instructions.HealthCheckCommand](t, final).Health.Test
	if strings.Join(health, " ") != "CMD /usr/bin/locksteward health" {
		t.Errorf("health check %v", health)
	}
}

// The chart's command line with the chart's configuration.
func TestChartStarts(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	o := mustRender(t, "")
	c := o.pod(t).Spec.Containers[0]
	m.put("/etc/locksteward/locksteward.yaml", at(o.config(t), map[string]int{"redis:6379": redis(t)}), 0o640)
	m.start(append([]string{"/usr/bin/locksteward"}, c.Args...)...)
	m.sweeps("redis")
	for _, path := range []string{c.LivenessProbe.HTTPGet.Path, c.ReadinessProbe.HTTPGet.Path, c.StartupProbe.HTTPGet.Path} {
		if said, code := fetch(fmt.Sprintf("http://127.0.0.1:%d%s", m.port, path)); code != 200 {
			t.Errorf("probe %s: %d %s", path, code, said)
		}
	}
}

// The unit's command line, with secrets as systemd's credentials are.
func TestUnitStarts(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	text := string(must(t, filepath.Join(root, "deploy/systemd/locksteward.service")))
	field := func(name string) string {
		found := regexp.MustCompile(`(?m)^` + name + `=(.*)$`).FindStringSubmatch(text)
		if found == nil {
			t.Fatalf("the unit has no %s", name)
		}
		return found[1]
	}
	m.cwd = field("WorkingDirectory")
	m.env = append(m.env, field("Environment"), "CREDENTIALS_DIRECTORY=/run/credentials/locksteward.service")
	acl := put(t, t.TempDir(), "users.acl", "user default off\nuser scanner on >hunter2 ~* &* +@all\nuser releaser on >hunter3 ~* &* +@all\n")
	port := redis(t, "--aclfile", acl)
	// The example of credentials.conf is the configuration.
	var config strings.Builder
	for line := range strings.Lines(string(must(t, filepath.Join(root, "deploy/systemd/credentials.conf")))) {
		if strings.HasPrefix(line, "#   ") {
			config.WriteString(strings.TrimPrefix(line, "#   "))
		}
	}
	m.put("/etc/locksteward/locksteward.yaml", strings.ReplaceAll(config.String(), "127.0.0.1:6379", fmt.Sprintf("127.0.0.1:%d", port)), 0o640)
	m.put("/run/credentials/locksteward.service/scanner", "hunter2\n", 0o440)
	m.put("/run/credentials/locksteward.service/releaser", "hunter3\n", 0o440)
	m.start(strings.Fields(field("ExecStart"))...)
	m.sweeps("orders")
}

// The whole of the Compose file but Grafana: Redis with the access list of
// secrets.sh, the agent with the stack's configuration, Alertmanager. The
// application that breaks makes an alert.
func TestComposeStackTellsOfABrokenLock(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	p := project(t)
	made := secrets(t)
	acl := string(must(t, filepath.Join(made, "redis.acl")))
	if version, err := command(t, lookPath(t, "redis-server"), "--version"); err != nil || regexp.MustCompile(`v=([0-6]|7\.[01])\.`).MatchString(version) {
		acl = strings.ReplaceAll(acl, " +client|no-touch", "") // from 7.2 on, as the stack's
	}
	args := p.Services["redis"].Command[1:]
	for i, a := range args {
		if a == "/run/secrets/redis.acl" {
			args[i] = put(t, t.TempDir(), "redis.acl", acl)
		}
	}
	port := redis(t, args...)
	cli := func(user, password string, argv ...string) string {
		cmd := exec.CommandContext(t.Context(), lookPath(t, "redis-cli"), append([]string{"-p", fmt.Sprint(port), "--user", user, "--no-auth-warning"}, argv...)...)
		cmd.Env = append(cmd.Environ(), "REDISCLI_AUTH="+password)
		said, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("redis-cli %v: %v\n%s", argv, err, said)
		}
		return strings.TrimSpace(string(said))
	}
	if said := cli("health", "none", "ping"); said != "PONG" {
		t.Errorf("the health check of Redis: %s", said)
	}

	alerts := freePort(t)
	serve(t, lookPath(t, "prometheus-alertmanager"), "--config.file="+filepath.Join(absolute(t, composeDir), "alertmanager/alertmanager.yml"),
		"--storage.path="+t.TempDir(), "--cluster.listen-address=", fmt.Sprintf("--web.listen-address=127.0.0.1:%d", alerts))

	for _, s := range p.Services["locksteward"].Secrets {
		m.put("/run/secrets/"+s.Source, string(must(t, filepath.Join(made, s.Source))), 0o444)
	}
	config := at(string(must(t, filepath.Join(composeDir, "locksteward.yaml"))), map[string]int{"redis:6379": port, "alertmanager:9093": alerts})
	m.put("/etc/locksteward/locksteward.yaml", config, 0o444)
	m.start(append([]string{"/usr/bin/locksteward"}, p.Services["locksteward"].Command...)...)
	m.sweeps("redis")

	token := strings.TrimSpace(string(must(t, filepath.Join(made, "ana.token"))))
	locks := fmt.Sprintf("http://127.0.0.1:%d/api/v1/locks", m.page)
	if said, code := fetch(locks); code != 401 {
		t.Errorf("the console shows locks to nobody in particular: %d %s", code, said)
	}
	broke := strings.Join(p.Services["break"].Command, " ")
	set := regexp.MustCompile(`SET (\S+) "\$+\(hostname\)" NX`).FindStringSubmatch(broke)
	if set == nil {
		t.Fatalf("break runs %q", broke)
	}
	if said := cli("application", strings.TrimSpace(string(must(t, filepath.Join(made, "application")))), "SET", set[1], "a-host", "NX"); said != "OK" {
		t.Fatalf("the application cannot take its lock: %s", said)
	}
	m.until("the console shows the lock", func() (string, bool) {
		said, _ := fetch(locks, "Authorization", "Bearer "+token)
		return said, strings.Contains(said, set[1])
	})
	m.until("Alertmanager has the alert", func() (string, bool) {
		said, _ := fetch(fmt.Sprintf("http://127.0.0.1:%d/api/v2/alerts", alerts))
		return said, strings.Contains(said, "ttl/none") && strings.Contains(said, "orders")
	})
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	out, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
