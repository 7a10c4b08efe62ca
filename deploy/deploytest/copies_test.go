package deploytest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The chart cannot read outside of its folder: what it has of grafana/ is the same,
// byte for byte.
func TestChartHasTheFilesOfGrafana(t *testing.T) {
	t.Parallel()
	for dir, pattern := range map[string]string{"rules": "*.yaml", "dashboards": "*.json"} {
		sources, err := filepath.Glob(filepath.Join(root, "grafana", pattern))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, source := range sources {
			name := filepath.Base(source)
			if strings.HasSuffix(name, "_test.yaml") {
				continue
			}
			names = append(names, name)
			same(t, filepath.Join(chartDir, "files", dir, name), must(t, source))
		}
		entries, err := os.ReadDir(filepath.Join(chartDir, "files", dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if !slices.Contains(names, e.Name()) {
				t.Errorf("files/%s/%s is not in grafana/: remove it", dir, e.Name())
			}
		}
		if len(names) == 0 {
			t.Error("nothing found in grafana/")
		}
	}
}

// deploy/kubernetes/ is what the chart renders.
func TestManifestsAreTheChart(t *testing.T) {
	t.Parallel()
	head := `# Rendered from the chart deploy/helm/locksteward (make deploy-golden): change that.
# %s
#   kubectl create namespace locks && kubectl apply -f FILE
`
	for file, m := range map[string]struct{ says, values string }{
		"locksteward.yaml": {"One agent with its store on a volume. Name your Redis in the ConfigMap first.", "image: {pullPolicy: IfNotPresent}"},
		"replicas.yaml": {`Three agents that share the work through PostgreSQL. Name your Redis and your database in the
# ConfigMap, and make the Secrets locksteward-db, -users and -audit first
# (docs/deploy.md).`, `
replicas: 3
store:
  type: postgres
  postgres:
    dsn: postgres://locksteward@postgres:5432/locksteward?sslmode=verify-full
    passwordSecret: {name: locksteward-db, key: password}
  auditKeySecret: {name: locksteward-audit, key: audit.pem}
console: {usersSecret: {name: locksteward-users, key: users.yaml}}
`},
	} {
		text := strings.Replace(head, "%s", m.says, 1) + mustRender(t, m.values).manifest()
		same(t, filepath.Join(root, "deploy", "kubernetes", file), []byte(text))
	}
}
