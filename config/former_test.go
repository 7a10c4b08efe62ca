package config_test

import (
	"strings"
	"testing"

	"github.com/locksteward/locksteward/config"
)

// A key of an earlier configuration is refused like any unknown one, with what to write
// instead.
func TestFormerKeys(t *testing.T) {
	t.Setenv("LOCKSTEWARD_METRICS_MAX_SERIES", "500")
	_, err := config.Parse("c.yaml", []byte(`targets: [{name: a, url: 'redis://127.0.0.1', max_server_share: 2%}]
targets_from: {srv: [{record: _redis._tcp.example.org, target: {name: '{host}', url: 'redis://{host}:{port}', max_server_share: 2%}}]}
metrics: {max_series: 700}
alert: {queue_size: 5}
`))
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		`c.yaml:1: targets[0].max_server_share: unknown key (got "2%"), write pace: {idle: 10%, busy: 1%} instead`,
		`c.yaml:2: targets_from.srv[0].target.max_server_share: unknown key (got "2%"), write pace`,
		`c.yaml:3: metrics.max_series: unknown key (got "700"), set sample_limit in Prometheus instead`,
		`c.yaml:4: alert.queue_size: unknown key (got "5"), the store bounds what waits: leave it out`,
		`environment LOCKSTEWARD_METRICS_MAX_SERIES: means nothing (got "500"), set sample_limit in Prometheus instead`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
}
