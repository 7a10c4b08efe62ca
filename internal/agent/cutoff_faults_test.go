package agent_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testam"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/release"
)

// pager stands in for the Events API of PagerDuty: it keeps which actions came for
// which dedup_key.
type pager struct {
	url string

	mu   sync.Mutex
	came map[string][]string
}

func newPager(t *testing.T) *pager {
	t.Helper()
	p := &pager{came: map[string][]string{}}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e struct {
			Action string `json:"event_action"`
			Key    string `json:"dedup_key"`
		}
		raw, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(raw, &e) != nil {
			t.Errorf("got %s, %v", raw, err)
		}
		p.mu.Lock()
		p.came[e.Key] = append(p.came[e.Key], e.Action)
		p.mu.Unlock()
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"status":"success"}`)
	}))
	t.Cleanup(srv.Close)
	p.url = srv.URL
	return p
}

// counts are how many keys there are, and how often an action came.
func (p *pager) counts(action string) (keys, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, actions := range p.came {
		for _, a := range actions {
			if a == action {
				n++
			}
		}
	}
	return len(p.came), n
}

// Two agents with one configuration are cut off from each other: each has a store of its
// own and knows nothing of the other. Both report a lock, each under ids of its own, and
// what a sink dedupes by is the same: one alert in Alertmanager, one dedup_key for
// PagerDuty, one fingerprint in the webhooks. Both end it.
// fault: 82
func TestAgentsCutOffTellOfOneFinding(t *testing.T) {
	t.Parallel()
	srv, am, pd, ears := testredis.Start(t), testam.Start(t, testam.Options{}), newPager(t), [2]*ear{newEar(t), newEar(t)}
	rdb := srv.Client(t)
	const key = "lock:order:1"
	set(t, rdb, key, token, 0)
	routing := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(routing, []byte("0123456789abcdef0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, e := range ears { // the ears differ to tell the agents apart: all else is the same
		newBed(t, target(srv.URL())+orders+receivers("ops", e.url)+`
    - {name: am, kind: alertmanager, url: '`+am.URL()+`', allow_private: true, resend: 1s}
    - {name: pd, kind: pagerduty, url: '`+pd.url+`', allow_private: true, routing_key_file: '`+routing+`'}
`)
	}
	alerts := func() []testam.Alert { return am.Alerts("alertname", "LockstewardTtlNone") }
	testredis.Eventually(t, within, func() bool {
		_, n := pd.counts("trigger")
		return ears[0].times(key+" firing") == 1 && ears[1].times(key+" firing") == 1 && n == 2 && len(alerts()) > 0
	}, "the two do not tell")
	first, second := ears[0].of("")[0].Findings[0], ears[1].of("")[0].Findings[0]
	if first.Fingerprint == "" || first.Fingerprint != second.Fingerprint {
		t.Errorf("fingerprints %q and %q", first.Fingerprint, second.Fingerprint)
	}
	if keys, _ := pd.counts("trigger"); keys != 1 {
		t.Errorf("%d dedup_keys", keys)
	}
	// Alertmanager is notified by each again and again.
	at := alerts()[0].UpdatedAt
	testredis.Eventually(t, within, func() bool { l := alerts(); return len(l) != 1 || l[0].UpdatedAt.After(at.Add(3*time.Second)) }, "the alert is not reported again")
	if l := alerts(); len(l) != 1 {
		t.Errorf("%d alerts: %+v", len(l), l)
	}
	rdb.Del(t.Context(), key)
	testredis.Eventually(t, within, func() bool {
		_, n := pd.counts("resolve")
		return ears[0].times(key+" resolved") == 1 && ears[1].times(key+" resolved") == 1 && n == 2 && len(alerts()) == 0
	}, "the two do not end it")
}

// Both may release a lock without a person, and know nothing of each other: one does, and
// the other does not say so. What the next holder has then stays.
// fault: 82
func TestAgentsCutOffReleaseOnce(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	const key, next = "lock:order:1", "the next holder"
	set(t, rdb, key, token, time.Hour)
	var beds [2]*bed
	var dead [2]release.Dead
	for i := range beds {
		beds[i] = newBed(t, target(srv.URL())+`
classes:
  - {class: orders, match: ["lock:order:*"], release: auto, dead_when: [holder/dead]}
`)
		testredis.Eventually(t, within, func() bool {
			l, _, err := beds[i].agent.ReadLock(t.Context(), "main", key)
			dead[i] = release.Dead{Lock: l, Firing: []string{"holder/dead"}, Proof: locksteward.Proven}
			return err == nil
		}, "the lock is not seen")
	}
	var states [2]locksteward.RequestState
	var both sync.WaitGroup
	for i, b := range beds {
		both.Go(func() {
			list, err := b.agent.Swept(t.Context(), "main", []release.Dead{dead[i]})
			if err == nil && len(list) == 1 {
				states[i] = list[0].State
			}
		})
	}
	testredis.Eventually(t, within, func() bool { return rdb.SetNX(t.Context(), key, next, time.Hour).Val() }, "nobody releases the lock")
	both.Wait()
	t.Logf("the requests are %q", states)
	if (states[0] == locksteward.RequestReleased) == (states[1] == locksteward.RequestReleased) {
		t.Errorf("the requests are %q, want one released", states)
	}
	if got := rdb.Get(t.Context(), key).Val(); got != next {
		t.Errorf("the next holder has lost the lock: it is %q", got)
	}
}
