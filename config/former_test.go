package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/locksteward/locksteward/config"
)

// A key of an earlier configuration is refused like any unknown one, with what to write
// instead.
func TestFormerKeys(t *testing.T) {
	t.Parallel()
	_, err := config.Parse("c.yaml", []byte(`targets: [{name: a, url: 'redis://127.0.0.1', max_server_share: 2%}]
targets_from: {srv: [{record: _redis._tcp.example.org, target: {name: '{host}', url: 'redis://{host}:{port}', max_server_share: 2%}}]}
metrics: {max_series: 700}
alert:
  queue_size: 5
  receivers:
    - {name: chat, slack: {url_file: /run/secrets/slack, mention: [here]}}
    - {name: none}
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
		`c.yaml:8: alert.receivers[1].kind: is missing: write webhook, `,
		`c.yaml:9: alert.receivers[2].secret_file: unknown key (got <secret>), write secret_files: [FILE] instead`,
		`c.yaml:9: alert.receivers[2].at_mobiles: unknown key (got a list), write mention: [NUMBER, …] instead`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
	// That the new key is missing is a consequence.
	if strings.Contains(err.Error(), "receivers[0].kind") {
		t.Errorf("a consequence is in:\n%v", err)
	}
}

// So is the variable of one.
func TestFormerVariables(t *testing.T) {
	t.Setenv("LOCKSTEWARD_METRICS_MAX_SERIES", "500")
	t.Setenv("LOCKSTEWARD_TARGETS_0_MAX_SERVER_SHARE", "2%")
	t.Setenv("LOCKSTEWARD_ALERT_RECEIVERS_0_WEBHOOK_URL", "https://hooks.example.org/s3cr3t")
	want := []string{
		`environment LOCKSTEWARD_ALERT_RECEIVERS_0_WEBHOOK_URL: means nothing (got <secret>), write LOCKSTEWARD_ALERT_RECEIVERS_0_KIND=webhook and LOCKSTEWARD_ALERT_RECEIVERS_0_URL instead`,
		`environment LOCKSTEWARD_METRICS_MAX_SERIES: means nothing (got "500"), set sample_limit in Prometheus instead`,
		`environment LOCKSTEWARD_TARGETS_0_MAX_SERVER_SHARE: means nothing (got "2%"), write pace: {idle: 10%, busy: 1%} instead`,
	}
	if got := problems(t, minimal); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
