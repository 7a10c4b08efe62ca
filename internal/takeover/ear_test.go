package takeover_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/locksteward/locksteward/alert"
)

// ear is a webhook receiver that takes everything.
type ear struct {
	url string

	mu     sync.Mutex
	news   chan struct{}
	first  map[string]bool     // webhook ids
	told   map[string][]string // by target and key: the statuses of first deliveries
	copies int
}

func newEar(t *testing.T) *ear {
	e := &ear{news: make(chan struct{}), first: map[string]bool{}, told: map[string][]string{}}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			return // the replica was killed
		}
		var p alert.Payload
		if err := json.Unmarshal(raw, &p); err != nil || p.Omitted > 0 {
			t.Errorf("message: %v: %s", err, raw)
		}
		e.take(r.Header.Get(alert.HeaderID), p)
	}))
	t.Cleanup(server.Close)
	e.url = server.URL
	return e
}

func (e *ear) take(id string, p alert.Payload) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.first[id] {
		e.copies++
		return
	}
	e.first[id] = true
	for _, f := range p.Findings {
		if f.Rule == "ttl/none" {
			at := f.Target + " " + f.Key.Key
			e.told[at] = append(e.told[at], f.Status)
		}
	}
	close(e.news)
	e.news = make(chan struct{})
}

// heard says whether a status was told of a lock, and what to wait for if not.
func (e *ear) heard(at, status string) (bool, <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if slices.Contains(e.told[at], status) {
		return true, nil
	}
	return false, e.news
}
