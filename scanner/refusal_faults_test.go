package scanner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/catalogue"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/rules"
)

// A server without enough replicas takes no writes. That is reported once, with its
// cause, however often it is swept, and once again when it is over: by the errors of
// anyone who tried, and by INFO alone where no replica is in step at all.
// fault: 44
func TestServerWithTooFewReplicasIsReportedOnce(t *testing.T) {
	t.Parallel()
	testredis.Since(t, 6, 2, "the count of each error in INFO")
	srv := testredis.Start(t)
	first := testredis.StartReplica(t, srv)
	c := srv.Client(t)
	ctx := t.Context()
	must(t, c.Set(ctx, "lock:a", "tok", time.Hour).Err())
	s := fast(srv.URL()).build(t)
	e, err := rules.New(nil, nil, nil)
	must(t, err)
	reported := func(sweeps int) (out []string) {
		t.Helper()
		for range sweeps {
			for _, tr := range e.Evaluate(sweep(t, s)) {
				if tr.Finding.Rule == "server/refuses-writes" && rules.Notifies(tr.Finding) {
					out = append(out, string(tr.Finding.Status))
				}
			}
		}
		return out
	}
	inStep := func(want int) {
		t.Helper()
		testredis.Eventually(t, 20*time.Second, func() bool {
			return strings.Contains(c.Info(ctx, "replication").Val(), fmt.Sprintf("min_slaves_good_slaves:%d\r", want))
		}, fmt.Sprint(want, " replicas in step"))
	}
	refused := func(prefix, cause string) {
		t.Helper()
		if prefix != "" {
			testredis.Eventually(t, 20*time.Second, func() bool {
				return redis.HasErrorPrefix(c.Set(ctx, "other", "x", 0).Err(), prefix)
			}, "no "+prefix)
		}
		if got := reported(3); !slices.Equal(got, []string{"firing"}) {
			t.Errorf("reported %q by three sweeps, want it once", got)
		}
		f := finding(e, "server/refuses-writes", "")
		if f == nil || !strings.Contains(catalogue.Text("en", f.Evidence[0]), cause) {
			t.Errorf("want %q: %+v", cause, f)
		}
	}
	over := func() {
		t.Helper()
		must(t, c.Set(ctx, "other", "x", 0).Err())
		if got := reported(3); !slices.Equal(got, []string{"resolved"}) {
			t.Errorf("afterwards reported %q by three sweeps, want its end once", got)
		}
	}

	must(t, c.ConfigSet(ctx, "min-replicas-to-write", "1").Err())
	inStep(1)
	if got := reported(2); len(got) != 0 {
		t.Errorf("reported %q of a server that has its replica", got)
	}
	must(t, c.ConfigSet(ctx, "min-replicas-to-write", "2").Err())
	refused("NOREPLICAS", "NOREPLICAS since min-replicas-to-write asks for more than the 1 replica in step, ")
	second := testredis.StartReplica(t, srv)
	inStep(2)
	over()

	// Nobody tries to write any more.
	first.Kill()
	second.Kill()
	inStep(0)
	refused("", "asks for more than the 0 replicas in step")
	must(t, c.ConfigSet(ctx, "min-replicas-to-write", "0").Err())
	over()
}
