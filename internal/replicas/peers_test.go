package replicas_test

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
	"github.com/locksteward/locksteward/internal/replicas"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testredis.Settled{M: m}) }

const within = 20 * time.Second

// told is what a replica was told to do, in order.
type told struct {
	mu   sync.Mutex
	what []string
}

func (l *told) add(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.what = append(l.what, s)
}

func (l *told) has(s string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.what, s)
}

type asked struct{ Key string }

type said struct{ Text string }

// newKeeper is a running replica that says its name when it is asked.
func newKeeper(t *testing.T, dsn, name string, work *told) (k *replicas.Keeper, stop func()) {
	t.Helper()
	st, err := store.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	k, err = replicas.Open(zap.NewNop(), st, replicas.Config{Name: name, Lease: time.Second}, "test")
	if err != nil {
		t.Fatal(err)
	}
	k.SetDuties([]replicas.Duty{{Name: store.House}, {Name: "orders"}})
	k.Use(replicas.Hooks{
		Take: func(_ context.Context, duty string) error { work.add("take " + duty); return nil },
		Drop: func(_ context.Context, duty string, lost bool) {
			if lost {
				duty += " lost"
			}
			work.add("drop " + duty)
		},
	})
	replicas.Handle(k.Peers(), "name", func(_ context.Context, in asked) (said, error) {
		if in.Key == "" {
			return said{}, locksteward.ErrInvalid
		}
		return said{name + " " + in.Key}, nil
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = k.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return k, stop
}

// Replicas call each other with their bytes, errors keep their kind, and nobody else
// is answered.
func TestReplicasCallEachOther(t *testing.T) {
	t.Parallel()
	dsn := testpg.Start(t).DSN()
	var wa, wb told
	a, _ := newKeeper(t, dsn, "a", &wa)
	b, stopB := newKeeper(t, dsn, "b", &wb)
	testredis.Eventually(t, within, func() bool {
		return len(a.Replicas()) == 2 && len(b.Replicas()) == 2 && (wb.has("take orders") || wb.has("take *")) && (wa.has("take orders") || wa.has("take *"))
	}, "they do not share the work")
	key := "lock:\x00\xff\n{}"
	got, err := replicas.Call[asked, said](t.Context(), a.Peers(), b.Me(), "name", asked{key})
	if err != nil || got.Text != "b "+key {
		t.Errorf("%q, %v", got.Text, err)
	}
	if _, err := replicas.Call[asked, said](t.Context(), a.Peers(), b.Me(), "name", asked{}); !errors.Is(err, locksteward.ErrInvalid) {
		t.Errorf("a refusal came as %v", err)
	}
	if _, err := replicas.Call[asked, said](t.Context(), a.Peers(), b.Me(), "other", asked{key}); api.ProblemFor(err).Code != api.CodeUnavailable {
		t.Errorf("a call that is not there: %v", err)
	}
	// Another server at the address of a replica is not believed.
	imposter := b.Me()
	imposter.Key, imposter.ID = strings.Repeat("0", 64), "another"
	if _, err := replicas.Call[asked, said](t.Context(), a.Peers(), imposter, "name", asked{key}); err == nil || !strings.Contains(err.Error(), "of no replica") {
		t.Errorf("an imposter is believed: %v", err)
	}
	// Who has no certificate of ours gets nothing.
	for name, cfg := range map[string]*tls.Config{
		"none":         {InsecureSkipVerify: true},                                                              //nolint:gosec // the point
		"another's":    {InsecureSkipVerify: true, Certificates: []tls.Certificate{replicas.NewCertificate(t)}}, //nolint:gosec // the point
		"an older TLS": {InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12},                                //nolint:gosec // the point
	} {
		c := &http.Client{Transport: &http.Transport{TLSClientConfig: cfg, DisableKeepAlives: true}, Timeout: within}
		res, err := c.Post("https://"+b.Me().Address+"/replica/v1/name", "", strings.NewReader("x"))
		if err == nil {
			raw, _ := io.ReadAll(res.Body)
			res.Body.Close()
			t.Errorf("certificate %s: answered %s %q", name, res.Status, raw)
		}
	}
	// One that ends in order is gone at once, and its work is another's.
	stopB()
	testredis.Eventually(t, within, func() bool {
		_, house, _ := a.Holder(store.House)
		_, orders, _ := a.Holder("orders")
		return house && orders && len(a.Replicas()) == 1
	}, "nobody takes over")
	if _, err := replicas.Call[asked, said](t.Context(), a.Peers(), b.Me(), "name", asked{key}); api.ProblemFor(err).Code != api.CodeUnavailable {
		t.Errorf("a replica that ended answers: %v", err)
	}
	if !wb.has("drop orders") && !wb.has("drop *") {
		t.Errorf("it ended without dropping anything: %v", wb.what)
	}
}

// A lease that another took is lost at the next beat; one that merely ran out, while
// nobody wanted it, goes on.
func TestKeeperLosesAndKeeps(t *testing.T) {
	t.Parallel()
	server := testpg.Start(t)
	var work told
	k, _ := newKeeper(t, server.DSN(), "a", &work)
	testredis.Eventually(t, within, func() bool {
		return k.Holds("orders", time.Now()) && k.Holds(store.House, time.Now())
	}, "nothing is taken")
	if k.Holds("orders", time.Now().Add(time.Minute)) {
		t.Error("a lease counts that is over by now")
	}
	before, _ := k.Lease("orders")
	server.Pause()
	testredis.Eventually(t, within, func() bool { return !k.Holds("orders", time.Now()) }, "a lease counts that cannot be renewed")
	server.Resume()
	testredis.Eventually(t, within, func() bool { return k.Holds("orders", time.Now()) }, "what nobody took is not gone on with")
	if work.has("drop orders lost") {
		t.Error("what nobody took was dropped")
	}
	if after, _ := k.Lease("orders"); after.Fence < before.Fence {
		t.Errorf("the fence fell from %d to %d", before.Fence, after.Fence)
	}
	st, err := store.Open(t.Context(), server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	testredis.Eventually(t, within, func() bool {
		l, ok := k.Lease("orders")
		if !ok {
			return true
		}
		if err := st.ReleaseLease(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		_, err := st.AcquireLease(t.Context(), "orders", "other", "", time.Minute)
		return err == nil
	}, "the lease cannot be taken")
	testredis.Eventually(t, within, func() bool { return work.has("drop orders lost") }, "it goes on with what another has")
}

// A lease under which nothing works, since the answer that gave it or the word that
// ended it was lost, is not prolonged for ever: what it is of is taken again.
func TestKeeperGivesBackWhatItDoesNotWorkUnder(t *testing.T) {
	t.Parallel()
	server := testpg.Start(t)
	var work told
	k, _ := newKeeper(t, server.DSN(), "a", &work)
	testredis.Eventually(t, within, func() bool { return k.Holds("orders", time.Now()) }, "nothing is taken")
	st, err := store.Open(t.Context(), server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	// Its own name and another fence: it does not know of it.
	lease, err := st.AcquireLease(t.Context(), "orders", k.Me().ID, "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	testredis.Eventually(t, within, func() bool {
		now, ok := k.Lease("orders")
		return ok && now.Fence > lease.Fence && k.Holds("orders", time.Now())
	}, "nobody works on it any more")
	if !work.has("drop orders lost") {
		t.Error("what was done under the old fence went on")
	}
}

// A replica ends when another program changed the schema.
func TestKeeperOfAnotherSchema(t *testing.T) {
	t.Parallel()
	server := testpg.Start(t)
	st, err := store.Open(t.Context(), server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	k, err := replicas.Open(zap.NewNop(), st, replicas.Config{Lease: time.Second}, "old")
	if err != nil {
		t.Fatal(err)
	}
	var work told
	k.SetDuties([]replicas.Duty{{Name: "orders"}})
	k.Use(replicas.Hooks{
		Take: func(_ context.Context, duty string) error { work.add("take " + duty); return nil },
		Drop: func(_ context.Context, duty string, lost bool) { work.add(fmt.Sprintf("drop %s %t", duty, lost)) },
	})
	ended := make(chan error, 1)
	go func() { ended <- k.Run(t.Context()) }()
	testredis.Eventually(t, within, func() bool { return k.Holds("orders", time.Now()) }, "nothing is taken")
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
		if !errors.Is(err, store.ErrOtherSchema) || !work.has("drop orders true") {
			t.Errorf("%v: %v", err, work.what)
		}
	case <-time.After(within):
		t.Error("it goes on")
	}
}
