package exporter_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/locksteward/locksteward/exporter"
)

// contract is the list of metrics that the design promises, with their labels.
// Others may stand beside them.
const contract = `
build_info version,revision,goversion
target_up target
locks target,class,library
locks_without_ttl target,class
locks_overdue target,class
lock_longest_hold_seconds target,class
lock_hold_seconds target,class
lock_waiters target,class
lock_acquires_total target,class
lock_acquire_failures_total target,class
lock_renewals_total target,class
lock_renewal_failures_total target,class
locks_lost_total target,class
locks_expired_total target,class
lock_candidates target
findings target,class,rule,severity,risk
class_info class,team,runbook
class_watched target,class
release_enabled target
sweep_duration_seconds target
sweep_keys_total target
sweep_last_success_timestamp_seconds target
sweep_complete target
watch_mode target,mode
watch_blind_seconds_total target
budget_throttled_seconds_total target,reason
redis_connected_clients target,node
redis_max_clients target,node
redis_memory_used_bytes target,node
redis_memory_max_bytes target,node
redis_cpu_seconds_total target,node,mode
redis_evicted_keys_total target,node
release_requests state
releases_total target,class,outcome
notifications_total receiver,outcome,reason
notifications_queue_length receiver
notifications_oldest_seconds receiver
config_last_reload_successful -
leader target
`

func TestContractOfTheDesign(t *testing.T) {
	t.Parallel()
	table := exporter.Metrics()
	for line := range strings.Lines(strings.TrimSpace(contract)) {
		name, labels, _ := strings.Cut(strings.TrimSpace(line), " ")
		i := slices.IndexFunc(table, func(m exporter.Metric) bool { return m.Name == "locksteward_"+name })
		if i < 0 {
			t.Errorf("there is no locksteward_%s", name)
			continue
		}
		if got := strings.Join(table[i].Labels, ","); got != strings.TrimPrefix(labels, "-") {
			t.Errorf("locksteward_%s has labels %s, the design says %s", name, got, labels)
		}
	}
	for _, m := range table {
		for _, l := range m.Labels {
			// What Prometheus and its users put on every series themselves.
			if slices.Contains([]string{"job", "instance", "cluster", "service", "env", "owner", "region", "zone", "le", "type"}, l) {
				t.Errorf("%s has the label %s, which clashes with labels of targets", m.Name, l)
			}
		}
	}
}
