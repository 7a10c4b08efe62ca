package agent_test

import (
	"strings"
	"testing"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// TestMetricsOfTheAgentItself: who works on a target, what the store lacks, and
// receivers that come and go with the configuration.
func TestMetricsOfTheAgentItself(t *testing.T) {
	t.Parallel()
	srv, s := testredis.Start(t), newSink(t)
	receiver := func(name string) string {
		return "alert: {receivers: [{name: " + name + ", kind: webhook, url: '" + s.url + "', allow_private: true}]}"
	}
	b := newBed(t, target(srv.URL())+orders+receiver("ops"))
	for _, series := range []string{
		`locksteward_leader{target="main"} 1`,
		`locksteward_findings_unsaved{target="main"} 0`,
		`locksteward_receiver_circuit_open{receiver="ops"} 0`,
		`locksteward_notifications_suppressed_total{reason="silence",receiver="ops"} 0`,
	} {
		b.awaitMetric(series)
	}
	b.write(target(srv.URL()) + orders + receiver("chat"))
	if err := b.agent.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.awaitMetric(`locksteward_receiver_circuit_open{receiver="chat"} 0`)
	if text := b.metrics(); strings.Contains(text, `receiver="ops"`) {
		t.Error("a receiver that a reload took out is in the metrics still")
	}
}
