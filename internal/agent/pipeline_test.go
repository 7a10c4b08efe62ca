package agent_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// token is a lock's value that must never be seen outside Redis.
const token = "5f2b8c1e-9d1a-4b6e-8f0a-1c2d3e4f5a6b"

const orders = `
classes:
  - {class: orders, match: ["lock:order:*"], team: checkout, release: approve}
`

func target(url string) string {
	return fmt.Sprintf("targets: [{name: main, url: '%s', schedule: '@every 1s', pace: {idle: 50%%, busy: 50%%}, release_credentials: {}}]\n", url)
}

func TestFoundNotifiedReleasedResolved(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	s := newSink(t)
	// A name with all that can go wrong in it.
	key := "lock:order:a\nb \"q\" \x00 \xff</script>"
	if err := rdb.SetNX(t.Context(), key, token, 0).Err(); err != nil {
		t.Fatal(err)
	}
	b := newBed(t, target(srv.URL())+orders+
		"alert: {first_sweep: fire, grouping: {by: [fingerprint], wait: 0s, interval: 0s}, receivers: [{name: ops, kind: webhook, url: '"+s.url+"', allow_private: true}]}")
	began := time.Now()
	testredis.Eventually(t, within, func() bool { return len(s.got()) == 1 }, "no firing message")
	t.Logf("reported %s after the start", time.Since(began).Round(time.Millisecond))
	if msg := s.got()[0]; !strings.Contains(msg, `"status":"firing"`) || !strings.Contains(msg, `"team":"checkout"`) ||
		!strings.Contains(msg, `"rule":"ttl/none"`) {
		t.Errorf("first message = %s", msg)
	}

	list, err := b.ana.Locks(t.Context(), apiclient.LocksQuery{})
	if err != nil || len(list.Locks) != 1 {
		t.Fatalf("locks = %+v, %v", list, err)
	}
	if back, err := list.Locks[0].Bytes(); err != nil || back != key {
		t.Errorf("key = %q, %v", back, err)
	}
	r, err := b.ana.CreateRequest(t.Context(), api.CreateRequest{Target: "main", Key: api.NewKey(key), Reason: "pod gone"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.ana.Approve(t.Context(), r.ID, api.Decide{Reason: "me too", EvidenceHash: r.EvidenceHash}); !errors.Is(err, locksteward.ErrRefused) {
		t.Errorf("approving one's own request: %v, want refused", err)
	}
	r, err = b.bo.Approve(t.Context(), r.ID, api.Decide{Reason: "checked", EvidenceHash: r.EvidenceHash})
	if err != nil || r.State != string(locksteward.RequestReleased) {
		t.Fatalf("approve = %s %q, %v", r.State, r.Outcome, err)
	}
	if n := rdb.Exists(t.Context(), key).Val(); n != 0 {
		t.Error("the lock is still there")
	}
	// Between the two people were notified of the request and of its end.
	testredis.Eventually(t, within, func() bool { return len(s.got()) == 4 }, "no resolved message")
	var reported []string
	for _, msg := range s.got() {
		if strings.Contains(msg, `"findings"`) && !strings.Contains(msg, `"release"`) {
			reported = append(reported, msg)
		}
	}
	if msg := reported[len(reported)-1]; len(reported) != 2 || !strings.Contains(msg, `"status":"resolved"`) {
		t.Errorf("second message = %s", msg)
	}
	out := b.everything() + strings.Join(s.got(), "")
	if strings.Contains(out, token) {
		t.Error("the lock's token got out")
	}
	if strings.Contains(b.metrics(), "lock:order") {
		t.Error("a key's name is in the metrics")
	}
}

func TestNewHolderBetweenRequestAndApproval(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	set(t, rdb, "lock:order:1", token, 0)
	b := newBed(t, target(srv.URL())+orders)
	testredis.Eventually(t, within, func() bool {
		list, err := b.ana.Locks(t.Context(), apiclient.LocksQuery{})
		return err == nil && list.Total == 1
	}, "the lock is not seen")
	r, err := b.ana.CreateRequest(t.Context(), api.CreateRequest{Target: "main", Key: api.NewKey("lock:order:1"), Reason: "stuck"})
	if err != nil {
		t.Fatal(err)
	}
	const other = "6f2b8c1e-9d1a-4b6e-8f0a-1c2d3e4f5a6b"
	set(t, rdb, "lock:order:1", other, time.Minute)
	r, err = b.bo.Approve(t.Context(), r.ID, api.Decide{Reason: "checked", EvidenceHash: r.EvidenceHash})
	if err != nil || r.State != string(locksteward.RequestChanged) {
		t.Fatalf("approve = %s %q, %v; want changed", r.State, r.Outcome, err)
	}
	if got := rdb.Get(t.Context(), "lock:order:1").Val(); got != other {
		t.Error("the new holder's lock was touched")
	}
}

func TestProposedOnce(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	set(t, srv.Client(t), "lock:order:1", token, 0)
	b := newBed(t, target(srv.URL())+strings.Replace(orders, "release: approve", "release: approve, dead_when: [ttl/none]", 1))
	testredis.Eventually(t, within, func() bool { return len(b.requests()) == 1 }, "nothing is proposed")
	r := b.requests()[0]
	if r.Requester != "agent" || r.State != string(locksteward.RequestPending) {
		t.Errorf("request by %s is %s", r.Requester, r.State)
	}
	if _, err := b.bo.Deny(t.Context(), r.ID, api.Decide{Reason: "it is alive"}); err != nil {
		t.Fatal(err)
	}
	b.awaitSweeps(3)
	if n := len(b.requests()); n != 1 {
		t.Errorf("%d requests after a denial, want no new one", n)
	}
}

func TestClusterThroughTheAgent(t *testing.T) {
	t.Parallel()
	cluster := testredis.StartCluster(t)
	rdb := cluster.Client(t)
	const locks = 12
	for i := range locks {
		if err := rdb.SetNX(t.Context(), fmt.Sprintf("lock:order:%d", i), token, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	b := newBed(t, target(cluster.URL())+orders)
	b.awaitMetric(fmt.Sprintf(`locksteward_locks{class="orders",library="token",target="main"} %d`, locks))
	for i := range locks {
		key := fmt.Sprintf("lock:order:%d", i)
		r, err := b.ana.CreateRequest(t.Context(), api.CreateRequest{Target: "main", Key: api.NewKey(key), Reason: "stuck"})
		if err != nil {
			t.Fatal(err)
		}
		if r, err = b.bo.Approve(t.Context(), r.ID, api.Decide{Reason: "checked", EvidenceHash: r.EvidenceHash}); err != nil ||
			r.State != string(locksteward.RequestReleased) {
			t.Errorf("release of %s = %s %q, %v", key, r.State, r.Outcome, err)
		}
	}
}

func set(t *testing.T, rdb redis.UniversalClient, key, value string, ttl time.Duration) {
	t.Helper()
	if err := rdb.Set(t.Context(), key, value, ttl).Err(); err != nil {
		t.Fatal(err)
	}
}

func logText(b *bed) string {
	var out strings.Builder
	for _, e := range b.logs.All() {
		out.WriteString(e.Message + "\n")
	}
	return out.String()
}
