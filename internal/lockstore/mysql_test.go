package lockstore_test

import (
	"strings"
	"testing"

	"github.com/locksteward/locksteward/internal/lockstore"
	"github.com/locksteward/locksteward/internal/testkit/testmariadb"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/redis/connect"
)

func TestMySQLURLs(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]lockstore.Address{
		"mysql://db/app": {Hosts: []string{"db:3306"}, Name: "app"},
		"MariaDB://u%40x@db:3307/caf%C3%A9%2Fx?tls=true": {Hosts: []string{"db:3307"}, Name: "café/x", Username: "u@x", TLS: true},
		"mysql://[::1]/app?tls=false":                    {Hosts: []string{"[::1]:3306"}, Name: "app"},
		"mysql://u@localhost/app?socket=%2Frun%2Fm.sock": {Hosts: []string{"/run/m.sock"}, Name: "app", Username: "u"},
	} {
		got, err := lockstore.Parse(url)
		if err != nil || got.Kind != lockstore.MySQL || got.Hosts[0] != want.Hosts[0] || got.Name != want.Name || got.Username != want.Username || got.TLS != want.TLS {
			t.Errorf("%s: %+v, %v", url, got, err)
		}
		if strings.Contains(got.String(), "@") {
			t.Errorf("%s: %s has the user", url, got)
		}
		if again, err := lockstore.Parse(got.String()); err != nil || again.Name != got.Name || again.TLS != got.TLS {
			t.Errorf("%s: %+v, %v", got, again, err)
		}
	}
	for url, remedy := range map[string]string{
		"mysql://u:secret@db":                    "the database is missing; write mysql://host:3306/database",
		"mysql://u:secret@db/app?sslmode=verify": `parameter "sslmode" is not allowed here; write mysql://`,
		"mysql://u:secret@db/app?tls=preferred":  "tls=true checks the server's certificate",
		"mysql://u:se/cret@db/app":               "must be written %2F",
		"mysql://u:secret@db:99999/app":          "the port",
		"mysql://u:secret@/app":                  "a host is empty",
		"mysqlx://u:secret@db/app":               "mysql://host:3306/database",
	} {
		if _, err := lockstore.Parse(url); err == nil || !strings.Contains(err.Error(), remedy) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// The URL alone is enough for doctor and acl.
func TestMySQLIsExamined(t *testing.T) {
	t.Parallel()
	dsn := testmariadb.Database(t)
	report := lockstore.Examine(t.Context(), lockstore.ExamineOptions{Target: "app", Connect: connect.Config{URL: dsn}, Release: &connect.Config{URL: dsn}})
	if report.Status != source.StatusOK || len(report.Checks) != 4 {
		t.Errorf("%+v", report)
	}
	text, err := lockstore.Rights(t.Context(), connect.Config{URL: dsn}, lockstore.RightsOptions{})
	if err != nil || !strings.Contains(text, "GRANT PROCESS, CONNECTION ADMIN ON *.* TO 'locksteward_release'@'%';") || strings.Contains(text, "performance_schema") {
		t.Errorf("%v\n%s", err, text)
	}
}
