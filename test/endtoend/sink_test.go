package endtoend_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/locksteward/locksteward/alert"
)

// sink is a webhook receiver that takes nothing without a valid signature, as the
// standard's own library judges it.
type sink struct {
	url, secret string

	mu  sync.Mutex
	all []alert.Payload
}

func newSink(t *testing.T) *sink {
	t.Helper()
	s := &sink{secret: "whsec_bG9ja3N0ZXdhcmQgZW5kIHRvIGVuZCBzZWNyZXQhIQ=="}
	judge, err := standard.NewWebhook(s.secret)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err == nil {
			err = judge.Verify(raw, r.Header)
		}
		var p alert.Payload
		if err == nil {
			err = json.Unmarshal(raw, &p)
		}
		if err != nil {
			t.Errorf("a message is not valid: %v: %s", err, raw)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		s.all = append(s.all, p)
		s.mu.Unlock()
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// of are the findings' events with a status.
func (s *sink) of(status string) []alert.PayloadFinding {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []alert.PayloadFinding
	for _, p := range s.all {
		for _, e := range p.Findings {
			if e.Status == status {
				out = append(out, e)
			}
		}
	}
	return out
}
