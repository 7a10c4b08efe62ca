package redis

import (
	"strconv"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/pace"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// info is a server's answer to INFO, by field name.
type info map[string]string

func parseInfo(text string) info { return connect.ParseInfo(text) }

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
// not reported.
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
// reported.
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

// keys returns how many keys a database has, -1 if the server does not say. A database
// without keys has no line.
func (i info) keys(db int) int64 {
	if len(i) == 0 {
		return -1
	}
	_, after, ok := strings.Cut(i["db"+strconv.Itoa(db)], "keys=")
	if !ok {
		return 0
	}
	count, _, _ := strings.Cut(after, ",")
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// server returns what follows from the answer about the process and its data. flushes is
// how often data was flushed.
func (i info) server(addr string, flushes int64) source.Server {
	former := i["master_replid2"]
	if strings.Trim(former, "0") == "" {
		former = ""
	}
	s := source.Server{
		State: i.node(addr), Process: i["run_id"], Line: i["master_replid"],
		FormerLine: former, FormerOffset: i.integer("second_repl_offset"), Promoted: i.promoted(), Replica: i.replica(),
		Uptime: i.uptime(), Evicted: i.integer("evicted_keys"), Flushes: flushes,
		Offset: i.integer("master_repl_offset"), OffsetAt: i.integer("server_time_usec"),
		Refused: i.refused(), InStep: i.integer("min_slaves_good_slaves"), // reported only while some must be
	}
	if s.OffsetAt < 0 {
		s.Offset = -1
	}
	return s
}

// refusalCodes are the errors by which a server refuses writes.
var refusalCodes = map[locksteward.RefusalReason]string{
	locksteward.RefusalSavingFails:    "MISCONF",
	locksteward.RefusalTooFewReplicas: "NOREPLICAS",
}

// refused is how often the server refused a write, by INFO errorstats. An error that
// never came has no line there, and Redis before 6.2 has none at all.
func (i info) refused() map[locksteward.RefusalReason]int64 {
	out := make(map[locksteward.RefusalReason]int64, len(refusalCodes))
	for reason, code := range refusalCodes {
		_, count, _ := strings.Cut(i["errorstat_"+code], "count=")
		n, err := strconv.ParseInt(count, 10, 64)
		if err != nil {
			n = 0
		}
		out[reason] = n
	}
	return out
}
