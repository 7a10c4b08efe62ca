package scanner

import (
	"strconv"
	"strings"

	"github.com/locksteward/locksteward"
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
	}
}
