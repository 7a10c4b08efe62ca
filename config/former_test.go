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
	t.Setenv("LOCKSTEWARD_ALERT_RECEIVERS_0_WEBHOOK_URL", "https://hooks.example.org/s3cr3t")
	_, err := config.Parse("c.yaml", []byte(`targets: [{name: a, url: 'redis://127.0.0.1', max_server_share: 2%}]
targets_from: {srv: [{record: _redis._tcp.example.org, target: {name: '{host}', url: 'redis://{host}:{port}', max_server_share: 2%}}]}
metrics: {max_series: 700}
alert:
  queue_size: 5
  receivers:
    - {name: chat, slack: {url_file: /run/secrets/slack, mention: [here]}}
    - {name: ding, kind: dingtalk, url_file: /f, secret_file: /s, at_mobiles: ["13800000000"]}
`))
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		`c.yaml:1: targets[0].max_server_share: unknown key (got "2%"), write pace: {idle: 10%, busy: 1%} instead`,
		`c.yaml:2: targets_from.srv[0].target.max_server_share: unknown key (got "2%"), write pace`,
		`c.yaml:3: metrics.max_series: unknown key (got "700"), set sample_limit in Prometheus instead`,
		`c.yaml:5: alert.queue_size: unknown key (got "5"), the store bounds what waits: leave it out`,
		`c.yaml:7: alert.receivers[0].slack: unknown key (got a mapping), write kind: slack and the keys of this block in its place`,
		`c.yaml:8: alert.receivers[1].secret_file: unknown key (got <secret>), write secret_files: [FILE] instead`,
		`c.yaml:8: alert.receivers[1].at_mobiles: unknown key (got a list), write mention: [NUMBER, …] instead`,
		`environment LOCKSTEWARD_ALERT_RECEIVERS_0_WEBHOOK_URL: means nothing (got <secret>), write kind: webhook and the keys`,
		`environment LOCKSTEWARD_METRICS_MAX_SERIES: means nothing (got "500"), set sample_limit in Prometheus instead`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
	// That the new key is missing is a consequence.
	for _, key := range []string{"kind: is missing", "s3cr3t"} {
		if strings.Contains(err.Error(), key) {
			t.Errorf("%q is in:\n%v", key, err)
		}
	}
}
