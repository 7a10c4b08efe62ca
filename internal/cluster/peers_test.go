package cluster_test

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/cluster"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testredis.Settled{M: m}) }

const within = 20 * time.Second

// journal is the hooks that were called, in order.
type journal struct {
	mu   sync.Mutex
	what []string
}

func (l *journal) add(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.what = append(l.what, s)
}

func (l *journal) has(s string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.what, s)
}

type question struct{ Key string }

type reply struct{ Text string }

// newMember runs a replica that answers calls with its name.
func newMember(t *testing.T, dsn, name string, work *journal) (m *cluster.Member, stop func()) {
	t.Helper()
	st, err := store.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	// A lease of a second ends by itself on a machine that stands still for some heartbeats.
	m, err = cluster.Open(zap.NewNop(), st, cluster.Config{Name: name, Lease: 3 * time.Second}, "test", cluster.Hooks{
		Start: func(_ context.Context, duty string) error { work.add("start " + duty); return nil },
		Stop: func(_ context.Context, duty string, lost bool) {
			if lost {
				duty += " lost"
			}
			work.add("stop " + duty)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	m.SetDuties([]cluster.Duty{{Name: store.SingletonDuties}, {Name: "orders"}})
	cluster.Handle(m.Peers(), "name", func(_ context.Context, in question) (reply, error) {
		if in.Key == "" {
			return reply{}, locksteward.ErrInvalid
		}
		return reply{name + " " + in.Key}, nil
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = m.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return m, stop
}

// Replicas call each other with their bytes, errors keep their kind, and nobody else
// is answered.
func TestReplicasCallEachOther(t *testing.T) {
	t.Parallel()
	dsn := testpg.Start(t).DSN()
	var wa, wb journal
	a, _ := newMember(t, dsn, "a", &wa)
	b, stopB := newMember(t, dsn, "b", &wb)
	testredis.Eventually(t, within, func() bool {
		return len(a.Replicas()) == 2 && len(b.Replicas()) == 2 && (wb.has("start orders") || wb.has("start *")) && (wa.has("start orders") || wa.has("start *"))
	}, "they do not share the work")
	key := "lock:\x00\xff\n{}"
	got, err := cluster.Call[question, reply](t.Context(), a.Peers(), b.Self(), "name", question{key})
	if err != nil || got.Text != "b "+key {
		t.Errorf("%q, %v", got.Text, err)
	}
	if _, err := cluster.Call[question, reply](t.Context(), a.Peers(), b.Self(), "name", question{}); !errors.Is(err, locksteward.ErrInvalid) {
		t.Errorf("a refusal came as %v", err)
	}
	if _, err := cluster.Call[question, reply](t.Context(), a.Peers(), b.Self(), "other", question{key}); api.ProblemFor(err).Code != api.CodeUnavailable {
		t.Errorf("a call that is not there: %v", err)
	}
	// Another server at the address of a replica is not believed.
	imposter := b.Self()
	imposter.Key, imposter.ID = strings.Repeat("0", 64), "another"
	if _, err := cluster.Call[question, reply](t.Context(), a.Peers(), imposter, "name", question{key}); err == nil || !strings.Contains(err.Error(), "of no replica") {
		t.Errorf("an imposter is believed: %v", err)
	}
	// Who has no certificate of ours gets nothing.
	for name, cfg := range map[string]*tls.Config{
		"none":         {InsecureSkipVerify: true},                                                             //nolint:gosec // the point
		"another's":    {InsecureSkipVerify: true, Certificates: []tls.Certificate{cluster.NewCertificate(t)}}, //nolint:gosec // the point
		"an older TLS": {InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12},                               //nolint:gosec // the point
	} {
		c := &http.Client{Transport: &http.Transport{TLSClientConfig: cfg, DisableKeepAlives: true}, Timeout: within}
		res, err := c.Post("https://"+b.Self().Address+"/replica/v1/name", "", strings.NewReader("x"))
		if err == nil {
			raw, _ := io.ReadAll(res.Body)
			res.Body.Close()
			t.Errorf("certificate %s: answered %s %q", name, res.Status, raw)
		}
	}
	// One that ends in order is gone at once, and its work is another's.
	stopB()
	testredis.Eventually(t, within, func() bool {
		_, singleton, _ := a.Owner(store.SingletonDuties)
		_, orders, _ := a.Owner("orders")
		return singleton && orders && len(a.Replicas()) == 1
	}, "nobody takes over")
	if _, err := cluster.Call[question, reply](t.Context(), a.Peers(), b.Self(), "name", question{key}); api.ProblemFor(err).Code != api.CodeUnavailable {
		t.Errorf("a replica that ended answers: %v", err)
	}
	if !wb.has("stop orders") && !wb.has("stop *") {
		t.Errorf("it left without stopping anything: %v", wb.what)
	}
}

// A lease that another took is lost at the next heartbeat; one that merely ran out, while
// nobody wanted it, goes on.
func TestMemberLosesAndKeepsLeases(t *testing.T) {
	t.Parallel()
	server := testpg.Start(t)
	var work journal
	m, _ := newMember(t, server.DSN(), "a", &work)
	testredis.Eventually(t, within, func() bool {
		return m.Owns("orders", time.Now()) && m.Owns(store.SingletonDuties, time.Now())
	}, "nothing is taken")
	if m.Owns("orders", time.Now().Add(time.Minute)) {
		t.Error("a lease counts that is over by now")
	}
	before, _ := m.Lease("orders")
	server.Pause()
	testredis.Eventually(t, within, func() bool { return !m.Owns("orders", time.Now()) }, "a lease counts that cannot be renewed")
	server.Resume()
	testredis.Eventually(t, within, func() bool { return m.Owns("orders", time.Now()) }, "what nobody took is not gone on with")
	if work.has("stop orders lost") {
		t.Error("what no replica acquired was stopped")
	}
	if after, _ := m.Lease("orders"); after.Fence < before.Fence {
		t.Errorf("the fence fell from %d to %d", before.Fence, after.Fence)
	}
	st, err := store.Open(t.Context(), server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	testredis.Eventually(t, within, func() bool {
		l, ok := m.Lease("orders")
		if !ok {
			return true
		}
		if err := st.ReleaseLease(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		_, err := st.AcquireLease(t.Context(), "orders", "other", "", time.Minute)
		return err == nil
	}, "the lease cannot be taken")
	testredis.Eventually(t, within, func() bool { return work.has("stop orders lost") }, "it goes on with what another has")
}

// A lease under which no work runs, since the answer to an acquire or a release was lost, is not renewed for ever: its duty
// is acquired again.
func TestMemberReleasesUnusedLeases(t *testing.T) {
	t.Parallel()
	server := testpg.Start(t)
	var work journal
	m, _ := newMember(t, server.DSN(), "a", &work)
	testredis.Eventually(t, within, func() bool { return m.Owns("orders", time.Now()) }, "nothing is taken")
	st, err := store.Open(t.Context(), server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	// Its own name and another fence: it does not know of it.
	lease, err := st.AcquireLease(t.Context(), "orders", m.Self().ID, "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	testredis.Eventually(t, within, func() bool {
		now, ok := m.Lease("orders")
		return ok && now.Fence > lease.Fence && m.Owns("orders", time.Now())
	}, "nobody works on it any more")
	if !work.has("stop orders lost") {
		t.Error("what was done under the old fence went on")
	}
}

// A replica ends when another program changed the schema.
func TestMemberOfAnotherSchema(t *testing.T) {
	t.Parallel()
	server := testpg.Start(t)
	st, err := store.Open(t.Context(), server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	var work journal
	m, err := cluster.Open(zap.NewNop(), st, cluster.Config{Lease: time.Second}, "old", cluster.Hooks{
		Start: func(_ context.Context, duty string) error { work.add("start " + duty); return nil },
		Stop:  func(_ context.Context, duty string, lost bool) { work.add(fmt.Sprintf("stop %s %t", duty, lost)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	m.SetDuties([]cluster.Duty{{Name: "orders"}})
	ended := make(chan error, 1)
	go func() { ended <- m.Run(t.Context()) }()
	testredis.Eventually(t, within, func() bool { return m.Owns("orders", time.Now()) }, "nothing is taken")
	db, err := sql.Open("pgx", server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `INSERT INTO schema_version (version, applied_at) SELECT MAX(version) + 1, 0 FROM schema_version`); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, store.ErrOtherSchema) || !work.has("stop orders true") {
			t.Errorf("%v: %v", err, work.what)
		}
	case <-time.After(within):
		t.Error("it goes on")
	}
}
