package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/jackc/pgx/v5"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/bench/results"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/lockstore"
	"github.com/locksteward/locksteward/internal/testkit/testetcd"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/internal/testkit/testzk"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/redis/connect"
	sqlsource "github.com/locksteward/locksteward/source/sql"
)

// loadedStore is a store with locks in it.
type loadedStore struct {
	name, url, match, what string
	locks                  int
	pids                   []int
	open                   func(b *testing.B, url string) source.Source
}

// byURL opens a store as the agent does.
func byURL(b *testing.B, url string) source.Source {
	b.Helper()
	store, err := lockstore.Open(connect.Config{URL: url})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := store.Close(); err != nil {
			b.Error(err)
		}
	})
	src, err := store.Source(lockstore.Options{Log: zap.NewNop(), Digest: locksteward.NewDigestKey(), Unpaced: true})
	if err != nil {
		b.Fatal(err)
	}
	return src
}

// bySocket opens a PostgreSQL that listens on a socket alone.
func bySocket(b *testing.B, dsn string) source.Source {
	b.Helper()
	src, err := sqlsource.Open(source.Login{URL: dsn}, sqlsource.Options{Digest: locksteward.NewDigestKey()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := src.Close(); err != nil {
			b.Error(err)
		}
	})
	return src
}

// BenchmarkStores sweeps 100,000 rows of a lock table of PostgreSQL, and 10,000 locks each of
// etcd and ZooKeeper, and reports the medians of wall time and server CPU, and the memory
// that the agent keeps for a lock.
func BenchmarkStores(b *testing.B) {
	var rows [][]string
	for _, load := range []func(*testing.B) loadedStore{loadPostgres, loadEtcd, loadZooKeeper} {
		s := load(b)
		all, kept := sweepStore(b, s)
		m := all.median()
		b.ReportMetric(m.took, s.name+"-ms")
		b.ReportMetric(m.cpu, s.name+"-cpu-ms")
		rows = append(rows, []string{s.what, results.Number(m.took), results.Number(m.cpu), results.Whole(kept)})
	}
	if *resultsFile == "" {
		return
	}
	err := results.Put(*resultsFile, results.Section{
		Name: "stores", Title: "A sweep of other stores",
		About:   "All locks are of one class; nothing waits for the pace. The servers are new ones of their own.",
		Machine: results.Describe("", "go test . -run '^$' -bench BenchmarkStores -benchtime 1x"),
		Tables: []results.Table{{
			Title: fmt.Sprintf("Medians of %d sweeps", rounds), Header: []string{"What", "time, ms", "server CPU, ms", "agent's heap a lock, bytes"}, Rows: rows,
			Note: "CPU in steps of 10 ms, with the processes that the server began.",
		}},
	})
	if err != nil {
		b.Fatal(err)
	}
}

// sweepStore sweeps as often as a median needs.
func sweepStore(b *testing.B, s loadedStore) (all runs, keptPerLock float64) {
	b.Helper()
	src := s.open(b, s.url)
	classes, err := class.NewSet([]class.Class{{Name: "locks", Match: []string{s.match}}})
	if err != nil {
		b.Fatal(err)
	}
	before := heap()
	sc, err := scanner.New(zap.NewNop(), locksteward.Target{Name: "bench"}, src, classes, scanner.Config{NoThrottle: true}, scanner.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for range rounds + 1 {
		cpu := treeCPU(b, s.pids)
		began := time.Now()
		got, err := sc.Sweep(b.Context())
		took := time.Since(began)
		if err != nil || !got.Complete() || got.LockCount() != s.locks {
			b.Fatalf("sweep of %s: complete %v, %d locks, %v", s.name, got.Complete(), got.LockCount(), err)
		}
		all.add(cost{took: float64(took.Microseconds()) / 1000, cpu: treeCPU(b, s.pids) - cpu})
	}
	keptPerLock = max(0, float64(heap())-float64(before)) / float64(s.locks)
	runtime.KeepAlive(sc)
	return all[1:], keptPerLock // the first one pays for connections
}

func loadPostgres(b *testing.B) loadedStore {
	b.Helper()
	const locks = 100_000
	srv := testpg.Start(b)
	conn, err := pgx.Connect(b.Context(), srv.DSN())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(b.Context()))
	for _, statement := range []string{
		"CREATE TABLE shedlock (name varchar(64) PRIMARY KEY, lock_until timestamp NOT NULL, locked_at timestamp NOT NULL, locked_by varchar(255) NOT NULL)",
		fmt.Sprintf("INSERT INTO shedlock SELECT 'job-' || i, now() + interval '1 hour', now(), 'worker-' || i %% 50 FROM generate_series(1, %d) i", locks),
		"ANALYZE shedlock",
	} {
		if _, err := conn.Exec(b.Context(), statement); err != nil {
			b.Fatalf("%s: %v", statement, err)
		}
	}
	return loadedStore{"postgresql", srv.DSN(), "public.shedlock:*", "PostgreSQL, 100,000 rows of ShedLock", locks, []int{srv.PID()}, bySocket}
}

func loadEtcd(b *testing.B) loadedStore {
	b.Helper()
	const locks = 10_000
	srv := testetcd.Start(b)
	client := srv.Client(b)
	lease, err := client.Grant(b.Context(), 3600)
	if err != nil {
		b.Fatal(err)
	}
	var ops []clientv3.Op
	for i := range locks {
		ops = append(ops, clientv3.OpPut(fmt.Sprintf("/locks/job-%d/%x", i, int64(lease.ID)), "", clientv3.WithLease(lease.ID)))
		if len(ops) == 100 {
			if _, err := client.Txn(b.Context()).Then(ops...).Commit(); err != nil {
				b.Fatal(err)
			}
			ops = nil
		}
	}
	return loadedStore{"etcd", srv.URL(), "/locks/*", "etcd, 10,000 locks of clientv3 concurrency", locks, srv.PIDs(), byURL}
}

func loadZooKeeper(b *testing.B) loadedStore {
	b.Helper()
	const locks = 10_000
	srv := testzk.Start(b, testzk.Standalone)
	conn := srv.Client(b, 30*time.Second)
	acl := zk.WorldACL(zk.PermAll)
	if _, err := conn.Create("/locks", nil, 0, acl); err != nil {
		b.Fatal(err)
	}
	for i := 0; i < locks; i += 100 {
		var ops []any
		for j := i; j < i+100; j++ {
			dir := fmt.Sprintf("/locks/job-%d", j)
			ops = append(ops, &zk.CreateRequest{Path: dir, Acl: acl},
				&zk.CreateRequest{Path: dir + "/_c_5f3759df-a1b2-c3d4-e5f6-0123456789ab-lock-", Data: []byte("10.0.0.1"), Acl: acl, Flags: zk.FlagEphemeral | zk.FlagSequence})
		}
		if _, err := conn.Multi(ops...); err != nil {
			b.Fatal(err)
		}
	}
	return loadedStore{"zookeeper", "zookeeper://" + srv.Addr(), "/locks/*", "ZooKeeper, 10,000 locks of Curator", locks, []int{srv.PID()}, byURL}
}

// clockTicks is USER_HZ of Linux.
const clockTicks = 100

// treeCPU is the CPU time of processes and of their children so far, in ms.
func treeCPU(b *testing.B, pids []int) float64 {
	b.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		b.Fatal(err)
	}
	total := 0.0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(raw), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 15 {
			continue
		}
		number := func(i int) float64 {
			v, _ := strconv.ParseFloat(fields[i], 64) // the kernel writes numbers
			return v
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			continue
		}
		switch {
		case slices.Contains(pids, pid):
			total += number(11) + number(12) + number(13) + number(14) // with children that ended
		case slices.Contains(pids, int(number(1))):
			total += number(11) + number(12)
		}
	}
	return total * 1000 / clockTicks
}
