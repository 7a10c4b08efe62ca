package soak_test

import (
	"net/http"
	"sync"
	"testing"

	"github.com/locksteward/locksteward/internal/testkit/testagent"
)

// ear is a webhook receiver that takes everything.
type ear struct {
	*testagent.AlertLog // of ttl/none
	url                 string

	mu     sync.Mutex
	byRule map[string]int
}

func newEar(t *testing.T) *ear {
	e := &ear{AlertLog: testagent.NewAlertLog("ttl/none"), byRule: map[string]int{}}
	e.url = testagent.NewEar(t, e.take).URL
	return e
}

func (e *ear) take(_ http.ResponseWriter, _ *http.Request, m testagent.Message) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.Take(m) {
		return
	}
	for _, f := range m.Findings {
		e.byRule[f.Rule+" "+f.Status]++
	}
}

// received says whether a status was notified of a lock, and what to wait for if not.
func (e *ear) received(key, status string) (bool, <-chan struct{}) {
	return e.Notified("soak "+key, status)
}
