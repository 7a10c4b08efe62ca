package takeover_test

import (
	"net/http"
	"testing"

	"github.com/locksteward/locksteward/internal/testkit/testagent"
)

// ear is a webhook receiver that takes everything.
type ear struct {
	*testagent.AlertLog // of ttl/none
	url                 string
}

func newEar(t *testing.T) *ear {
	e := &ear{AlertLog: testagent.NewAlertLog("ttl/none")}
	e.url = testagent.NewEar(t, func(_ http.ResponseWriter, _ *http.Request, m testagent.Message) {
		if m.Omitted > 0 {
			t.Errorf("message leaves %d out: %s", m.Omitted, m.Body)
		}
		e.Take(m)
	}).URL
	return e
}
