package grafana

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

const boardsDir = "../../grafana"

// TestSchema reads the dashboards as the schema of Grafana has them: no unknown field, none missing, each of its type.
func TestSchema(t *testing.T) {
	t.Parallel()
	plugins.RegisterDefaultPlugins()
	for _, file := range boards(t) {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if problems := check(raw); problems != "" {
			t.Errorf("%s: %s", file, problems)
		}
		if problems := check([]byte(strings.Replace(string(raw), `"textMode"`, `"textMood"`, 1))); file == boards(t)[0] && problems == "" {
			t.Error("an option that does not exist is not found")
		}
	}
}

// check returns what is wrong with a dashboard. The strict reader's error is not nil without a problem either.
func check(raw []byte) string {
	var d dashboard.Dashboard
	if err := d.UnmarshalJSONStrict(raw); err != nil && err.Error() != "" {
		return err.Error()
	}
	if err := d.Validate(); err != nil {
		return err.Error()
	}
	return ""
}

func boards(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(boardsDir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("dashboards: %v, %v", files, err)
	}
	return files
}
