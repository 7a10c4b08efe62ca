package doctor

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/locksteward/locksteward/internal/plural"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// info is a server's answer to INFO, by field name.
type info map[string]string

func parseInfo(text string) info { return connect.ParseInfo(text) }

// number returns a field, -1 if the server does not tell it.
func (i info) number(name string) int64 {
	n, err := strconv.ParseInt(i[name], 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// part returns one value of a field such as "keys=3,expires=1"; -1 if it has none.
func (i info) part(name, key string) float64 {
	for pair := range strings.SplitSeq(i[name], ",") {
		if value, ok := strings.CutPrefix(pair, key+"="); ok {
			if f, err := strconv.ParseFloat(value, 64); err == nil {
				return f
			}
		}
	}
	return -1
}

// longAgo is when a snapshot no more counts as a recent one.
const longAgo = 24 * time.Hour

func (e *exam) persistence(m connect.Master, in info) {
	failing := []string{}
	for _, f := range [][2]string{
		{"rdb_last_bgsave_status", "the last snapshot"}, {"aof_last_write_status", "the last write to the log"}, {"aof_last_bgrewrite_status", "the last rewrite of the log"},
	} {
		if in[f[0]] == "err" {
			failing = append(failing, f[1]+" failed")
		}
	}
	switch {
	case len(failing) > 0:
		e.report.add("persistence", Fail, m.Addr, strings.Join(failing, ", "), "look into the server's log: disk, permissions, fork")
	case in["aof_enabled"] == "1":
		e.report.add("persistence", OK, m.Addr, "a log of all writes (appendonly)", "")
	case in["aof_enabled"] == "":
		e.report.add("persistence", Warn, m.Addr, "the server does not tell", "make sure that locks survive a restart")
	case in.number("connected_slaves") > 0:
		e.report.add("persistence", OK, m.Addr, "no log of writes; a replica can take over", "")
	default:
		found := "no log of writes (appendonly no) and no replica: a restart frees all locks since the last snapshot while their holders work"
		if last := in.number("rdb_last_save_time"); last > 0 && time.Since(time.Unix(last, 0)) > longAgo {
			found += ", which is of " + time.Unix(last, 0).UTC().Format(time.DateOnly)
		}
		e.report.add("persistence", Warn, m.Addr, found, "switch on appendonly, or add a replica")
	}
}

// nearlyFull is the part of maxmemory from which on the scanner slows down.
const nearlyFull = 0.95

func (e *exam) eviction(m connect.Master, in info) {
	policy, limit, used := in["maxmemory_policy"], in.number("maxmemory"), in.number("used_memory")
	full := limit > 0 && float64(used) > nearlyFull*float64(limit)
	switch {
	case policy == "":
		e.report.add("eviction", Warn, m.Addr, "the server does not tell its policy", "set maxmemory-policy noeviction")
	case limit == 0:
		e.report.add("eviction", OK, m.Addr, "no memory limit, so nothing is evicted (policy "+policy+")", "")
	case policy != "noeviction" && full:
		e.report.add("eviction", Fail, m.Addr, fmt.Sprintf("%s with %s of %s in use: locks are being evicted like any key, while their holders work", policy, size(used), size(limit)),
			"set maxmemory-policy noeviction, or give locks a server of their own")
	case policy != "noeviction":
		e.report.add("eviction", Warn, m.Addr, fmt.Sprintf("%s: when %s are full the server may evict locks while their holders work", policy, size(limit)),
			"set maxmemory-policy noeviction, or give locks a server of their own")
	case full:
		e.report.add("eviction", Warn, m.Addr, fmt.Sprintf("%s of %s in use: soon no lock can be taken, and sweeps slow down to a quarter", size(used), size(limit)), "raise maxmemory or delete what is not needed")
	default:
		e.report.add("eviction", OK, m.Addr, fmt.Sprintf("noeviction, %s of %s in use", size(used), size(limit)), "")
	}
}

func (e *exam) replication(m connect.Master, in info) {
	if role := in["role"]; role == "slave" || role == "replica" {
		e.report.add("replication", Fail, m.Addr, "the server is a replica: what it shows may be old, and sweeps of it count as incomplete", "point the target at the master, or name Sentinels or the Cluster")
		return
	}
	replicas := in.number("connected_slaves")
	switch {
	case replicas < 0:
		e.report.add("replication", Warn, m.Addr, "the server does not tell", "")
		return
	case replicas == 0:
		e.report.add("replication", OK, m.Addr, "no replica: nothing can take over", "")
		return
	}
	slow := []string{}
	for i := range replicas {
		name := "slave" + strconv.FormatInt(i, 10)
		switch lag := in.part(name, "lag"); {
		case !strings.Contains(in[name], "state=online"):
			slow = append(slow, "one is not online")
		case lag > 10:
			slow = append(slow, fmt.Sprintf("one is %.0fs behind", lag))
		}
	}
	if len(slow) > 0 {
		e.report.add("replication", Warn, m.Addr, plural.Count(replicas, "replica")+": "+strings.Join(slow, ", "), "look at the replica: a failover to it would lose locks")
		return
	}
	e.report.add("replication", OK, m.Addr, plural.Count(replicas, "replica")+", none of them behind; a failover may lose the locks of the last moment: fence what must not be written by two", "")
}
