package redis

import (
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/pace"
)

func TestInfoByFieldName(t *testing.T) {
	t.Parallel()
	i := parseInfo("# Server\r\nredis_version:7.0.15\r\nrun_id:abc\r\n# Memory\r\nused_memory:100\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lfu\r\n" +
		"used_cpu_sys:1.5\r\nrole:slave\r\nloading:1\r\nodd line\r\n")
	n := i.node("h:1")
	if n.Version != "7.0.15" || n.RunID != "abc" || n.MemoryUsed != 100 || n.MemoryMax != 0 || n.CPUSys != 1.5 || n.EvictionPolicy != "allkeys-lfu" {
		t.Errorf("%+v", n)
	}
	if n.ConnectedClients >= 0 || n.MaxClients >= 0 || n.CPUUser >= 0 || n.EvictedKeys >= 0 {
		t.Errorf("what was not reported must be negative: %+v", n)
	}
	if !i.lfu() || !i.replica() || !i.loading() {
		t.Error("lfu, replica or loading not seen")
	}
	if major, minor := i.version(); major != 7 || minor != 0 {
		t.Errorf("version %d.%d", major, minor)
	}
	if major, _ := parseInfo("redis_version:next").version(); major != 0 {
		t.Error("a version out of nowhere")
	}
	if v := parseInfo("redis_version:7.2.4\nvalkey_version:8.1.0\n").node("x").Version; v != "valkey 8.1.0" {
		t.Errorf("valkey: %q", v)
	}
}

func TestInfoOfProcessors(t *testing.T) {
	t.Parallel()
	const all = "used_cpu_sys:9\r\nused_cpu_user:9\r\n"
	for text, want := range map[string]pace.Counters{
		all + "used_cpu_sys_main_thread:1.5\r\nused_cpu_user_main_thread:2.25\r\n": {Active: -1, Main: 3.75, Process: 18, IOThreads: true},
		all + "used_active_time_main_thread:0.5\r\n":                               {Active: 0.5, Main: -1, Process: 18, IOThreads: true},
		"": {Active: -1, Main: -1, Process: -1, IOThreads: true},
	} {
		if got := parseInfo(text).counters(true); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}

func TestInfoOfDurability(t *testing.T) {
	t.Parallel()
	n := parseInfo("run_id:r\nuptime_in_seconds:61\naof_enabled:1\nrdb_last_bgsave_status:err\nrdb_last_save_time:1785585600\n" +
		"rdb_changes_since_last_save:7\nconnected_slaves:2\nmaster_replid:abc\n").node("a")
	if n.Uptime != 61*time.Second || !n.AOF || n.LastSaveOK || !n.LastSave.Equal(time.Unix(1785585600, 0)) || n.ChangesUnsaved != 7 || n.Replicas != 2 || n.ReplicationID != "abc" {
		t.Errorf("%+v", n)
	}
	n = parseInfo("").node("a")
	if n.Uptime >= 0 || n.AOF || !n.LastSaveOK || !n.LastSave.IsZero() || n.ChangesUnsaved >= 0 || n.Replicas >= 0 {
		t.Errorf("what was not reported: %+v", n)
	}
	stats := "cmdstat_flushall:calls=3,usec=9,usec_per_call=3.00\ncmdstat_flushdb:calls=2\ncmdstat_swapdb:odd\ncmdstat_get:calls=100"
	if got := parseInfo(stats).flushes(); got != 5 {
		t.Errorf("%d flushes", got)
	}
}
