package deploytest

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

var composeDir = filepath.Join(root, "deploy", "compose")

// project reads the Compose file as Compose does, with all its profiles.
func project(t *testing.T) *types.Project {
	t.Helper()
	dir, err := filepath.Abs(composeDir)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "compose.yaml")
	p, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir: dir, ConfigFiles: []types.ConfigFile{{Filename: file}}, Environment: types.Mapping{},
	}, func(o *loader.Options) { o.Profiles = []string{"*"} })
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestComposeStack(t *testing.T) {
	t.Parallel()
	p := project(t)
	if got, want := slices.Sorted(maps.Keys(p.Services)), []string{"alertmanager", "break", "grafana", "locksteward", "prometheus", "redis"}; !slices.Equal(got, want) {
		t.Errorf("services %v, want %v", got, want)
	}
	for name, s := range p.Services {
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") || s.MemLimit == 0 || s.PidsLimit == 0 {
			t.Errorf("%s is not hardened: %+v", name, s)
		}
		if name != "break" && (s.HealthCheck == nil || len(s.HealthCheck.Test) < 2) {
			t.Errorf("%s has no health check", name)
		}
		if !regexp.MustCompile(`:v?\d+\.\d+|:compose$`).MatchString(s.Image) {
			t.Errorf("%s: the image %s has no version", name, s.Image)
		}
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s publishes %s to everybody", name, port.Published)
			}
		}
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeBind {
				continue
			}
			if info, err := os.Stat(v.Source); err != nil || info.IsDir() || !v.ReadOnly {
				t.Errorf("%s mounts %s: must be a file of the repository, read-only (%v)", name, v.Source, err)
			}
		}
		for _, e := range s.Environment {
			if e != nil && regexp.MustCompile(`(?i)password|token|secret`).MatchString(*e) && !strings.HasPrefix(*e, "/run/secrets/") {
				t.Errorf("%s has a secret in its environment", name)
			}
		}
	}
}

// Each secret that a service reads is given to it, and secrets.sh makes it.
func TestComposeSecrets(t *testing.T) {
	t.Parallel()
	p := project(t)
	made := secrets(t)
	for name, s := range p.Secrets {
		if _, err := os.Stat(filepath.Join(made, filepath.Base(s.File))); err != nil {
			t.Errorf("secret %s: secrets.sh does not make it: %v", name, err)
		}
	}
	reads := func(text string) (out []string) {
		for _, m := range regexp.MustCompile(`/run/secrets/([\w.-]+)`).FindAllStringSubmatch(text, -1) {
			out = append(out, m[1])
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	for name, s := range p.Services {
		var given []string
		for _, secret := range s.Secrets {
			given = append(given, secret.Source)
		}
		slices.Sort(given)
		text := strings.Join(s.Command, " ")
		for _, e := range s.Environment {
			if e != nil {
				text += " " + *e
			}
		}
		if name == "locksteward" {
			text += string(must(t, filepath.Join(composeDir, "locksteward.yaml")))
		}
		if want := reads(text); !slices.Equal(given, want) {
			t.Errorf("%s reads %v and is given %v", name, want, given)
		}
	}
	// A second run changes nothing, and nothing is for others to write.
	before := string(must(t, filepath.Join(made, "redis.acl")))
	runSecrets(t, filepath.Dir(made))
	if string(must(t, filepath.Join(made, "redis.acl"))) != before {
		t.Error("secrets.sh made new passwords over those that were there")
	}
	if info, err := os.Stat(made); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder of the secrets: %v, %v", info, err)
	}
}

// secrets runs secrets.sh in a folder of its own and returns where they are.
func secrets(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secrets.sh"), must(t, filepath.Join(composeDir, "secrets.sh")), 0o755); err != nil {
		t.Fatal(err)
	}
	said := runSecrets(t, dir)
	made := filepath.Join(dir, "secrets")
	for _, name := range []string{"scanner", "releaser", "application", "grafana-admin", "ana.token"} {
		if secret := strings.TrimSpace(string(must(t, filepath.Join(made, name)))); len(secret) < 48 || strings.Contains(said, secret) {
			t.Errorf("secret %s is short, or was printed: %d characters", name, len(secret))
		}
	}
	return made
}

// The list of source/redis/acl.go is that of secrets.sh.
func TestComposeACLIsTheScanners(t *testing.T) {
	t.Parallel()
	script := string(must(t, filepath.Join(composeDir, "secrets.sh")))
	user := regexp.MustCompile(`(?m)^user scanner .*$`).FindString(script)
	rules := regexp.MustCompile(`"([+&][a-z_:|*]+)"`).FindAllStringSubmatch(string(must(t, filepath.Join(root, "source/redis/acl.go"))), -1)
	if len(rules) == 0 {
		t.Fatal("no rule found in source/redis/acl.go")
	}
	for _, r := range rules {
		if !slices.Contains(strings.Fields(user), r[1]) {
			t.Errorf("the scanner of secrets.sh lacks %s", r[1])
		}
	}
}

func TestPrometheusAndAlertmanagerTakeTheirFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := string(must(t, filepath.Join(composeDir, "prometheus/prometheus.yml")))
	rules, err := filepath.Abs(filepath.Join(root, "grafana"))
	if err != nil {
		t.Fatal(err)
	}
	mounted := map[string]bool{}
	for _, v := range project(t).Services["prometheus"].Volumes {
		mounted[v.Target] = true
	}
	for _, m := range regexp.MustCompile(`- (/etc/prometheus/rules/\S+)`).FindAllStringSubmatch(text, -1) {
		if !mounted[m[1]] {
			t.Errorf("prometheus.yml reads %s, which compose.yaml does not mount", m[1])
		}
	}
	file := put(t, dir, "prometheus.yml", strings.ReplaceAll(text, "/etc/prometheus/rules", rules))
	if said, err := command(t, lookPath(t, "promtool"), "check", "config", file); err != nil {
		t.Errorf("promtool: %v\n%s", err, said)
	}
	if said, err := command(t, lookPath(t, "amtool"), "check-config", filepath.Join(composeDir, "alertmanager/alertmanager.yml")); err != nil {
		t.Errorf("amtool: %v\n%s", err, said)
	}
}
