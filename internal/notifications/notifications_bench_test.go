package notifications

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/alert"
	"github.com/locksteward/locksteward/store"
)

// BenchmarkTelling is a storm of findings from the transaction that writes them to
// the receiver's answer and its note in the store.
func BenchmarkTelling(b *testing.B) {
	st, err := store.Open(b.Context(), "sqlite:"+filepath.Join(b.TempDir(), "store.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	var received atomic.Int64
	all := make(chan struct{})
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var p alert.Payload
		if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
			b.Error(err)
		}
		if received.Add(int64(len(p.Findings))) == int64(b.N) {
			close(all)
		}
	}))
	defer hook.Close()
	sender, err := alert.New(zap.NewNop(), alert.Config{Grouping: alert.Grouping{By: []string{"target"}}, Receivers: []alert.Receiver{
		{Name: "ops", Kind: "webhook", Endpoint: alert.Endpoint{URL: locksteward.Secret(hook.URL), AllowPrivate: true}},
	}}, st, alert.Hooks{})
	if err != nil {
		b.Fatal(err)
	}
	st.OnOutboxChange(sender.Wake)
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- sender.Run(ctx) }()
	transitions := make([]locksteward.Transition, b.N)
	findings := make([]locksteward.Finding, b.N)
	for i := range transitions {
		findings[i] = locksteward.Finding{
			Rule: "ttl/none", Severity: locksteward.SeverityCritical, Status: locksteward.StatusFiring, Target: "main", Key: fmt.Sprint("lock:", i),
			Summary: locksteward.Literal("never expires"), Evidence: []locksteward.Message{locksteward.Literal("PTTL is -1", "PTTL 为 -1")},
		}
		transitions[i] = locksteward.Transition{EventID: fmt.Sprint("e", i), At: time.Now(), Finding: findings[i]}
	}
	b.ResetTimer()
	if err := st.SaveFindings(ctx, "main", slices.Values(findings), store.Outgoing{Events: sender.Events(transitions, nil, nil)}); err != nil {
		b.Fatal(err)
	}
	<-all
	b.StopTimer()
	cancel()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}
