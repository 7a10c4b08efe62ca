package scanner

import (
	"strconv"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/pace"
)

// info is a server's answer to INFO, by field name.
type info map[string]string

func parseInfo(text string) info {
	fields := info{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		if ok && !strings.HasPrefix(name, "#") {
			fields[name] = value
		}
	}
	return fields
}

// integer returns a field, or -1 when the server does not tell it.
func (i info) integer(name string) int64 {
	n, err := strconv.ParseInt(i[name], 10, 64)
	if err != nil {
		return -1
	}
	return n
}

func (i info) seconds(name string) float64 {
	f, err := strconv.ParseFloat(i[name], 64)
	if err != nil {
		return -1
	}
	return f
}

// counters is what the server reports of its use of processors (INFO cpu). ioThreads says that other threads read and
// write for its clients.
func (i info) counters(ioThreads bool) pace.Counters {
	sum := func(a, b string) float64 {
		system, user := i.seconds(a), i.seconds(b)
		if system < 0 || user < 0 {
			return -1
		}
		return system + user
	}
	return pace.Counters{
		Active:    i.seconds("used_active_time_main_thread"),                    // Valkey 9.1
		Main:      sum("used_cpu_sys_main_thread", "used_cpu_user_main_thread"), // Redis 7.0
		Process:   sum("used_cpu_sys", "used_cpu_user"),
		IOThreads: ioThreads,
	}
}

// version returns major and minor version of the protocol's commands; 0.0 if
// not told.
func (i info) version() (major, minor int) {
	parts := strings.SplitN(i["redis_version"], ".", 3)
	if len(parts) < 2 {
		return 0, 0
	}
	major, err := strconv.Atoi(parts[0])
	if err != nil {
		return 0, 0
	}
	minor, err = strconv.Atoi(parts[1])
	if err != nil {
		return 0, 0
	}
	return major, minor
}

// lfu says that the server keeps frequencies instead of idle times.
func (i info) lfu() bool { return strings.Contains(i["maxmemory_policy"], "lfu") }

func (i info) replica() bool { return i["role"] == "slave" || i["role"] == "replica" }

func (i info) loading() bool { return i["loading"] == "1" }

// uptime is since the server process started, in whole seconds; negative if not
// told.
func (i info) uptime() time.Duration {
	s := i.integer("uptime_in_seconds")
	if s < 0 {
		return -1
	}
	return time.Duration(s) * time.Second
}

// promoted says that the server once followed another master and does no more:
// it keeps that one's replication id as its second. (A master that merely gives
// up its backlog gets a new id too, and no second one.)
func (i info) promoted() bool {
	second := i["master_replid2"]
	return strings.Trim(second, "0") != "" && !i.replica()
}

// flushes is how often data was flushed, from INFO commandstats: the section has
// no line for a command that was never called.
func (i info) flushes() int64 {
	var n int64
	for _, command := range []string{"flushall", "flushdb", "swapdb"} {
		_, after, ok := strings.Cut(i["cmdstat_"+command], "calls=")
		if !ok {
			continue
		}
		calls, _, _ := strings.Cut(after, ",")
		if c, err := strconv.ParseInt(calls, 10, 64); err == nil {
			n += c
		}
	}
	return n
}

// flag returns a field that is 0 or 1.
func (i info) flag(name string) bool { return i[name] == "1" }

// saved says that the last snapshot and the last write to the log, if there were
// any, worked.
func (i info) saved() bool {
	return i["rdb_last_bgsave_status"] != "err" && i["aof_last_write_status"] != "err" && i["aof_last_bgrewrite_status"] != "err"
}

// lastSave is when the last snapshot was made. Servers tell the time of their
// start where they made none.
func (i info) lastSave() time.Time {
	if s := i.integer("rdb_last_save_time"); s > 0 {
		return time.Unix(s, 0)
	}
	return time.Time{}
}

// node returns the figures for people.
func (i info) node(addr string) locksteward.NodeState {
	version := i["redis_version"]
	if v := i["valkey_version"]; v != "" {
		version = "valkey " + v
	}
	return locksteward.NodeState{
		Addr:             addr,
		Version:          version,
		RunID:            i["run_id"],
		ConnectedClients: i.integer("connected_clients"),
		MaxClients:       i.integer("maxclients"),
		MemoryUsed:       i.integer("used_memory"),
		MemoryMax:        i.integer("maxmemory"),
		CPUSys:           i.seconds("used_cpu_sys"),
		CPUUser:          i.seconds("used_cpu_user"),
		EvictedKeys:      i.integer("evicted_keys"),
		EvictionPolicy:   i["maxmemory_policy"],
		Uptime:           i.uptime(),
		ReplicationID:    i["master_replid"],
		AOF:              i.flag("aof_enabled"),
		LastSaveOK:       i.saved(),
		LastSave:         i.lastSave(),
		ChangesUnsaved:   i.integer("rdb_changes_since_last_save"),
		Replicas:         i.integer("connected_slaves"),
	}
}
