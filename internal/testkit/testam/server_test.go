package testam_test

import (
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/locksteward/locksteward/internal/testkit/testam"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func post(t *testing.T, s *testam.Server, body string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Post(s.URL()+"/api/v2/alerts", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v", resp.Status, err)
	}
}

func TestAlertsComeAndGo(t *testing.T) {
	t.Parallel()
	s := testam.Start(t, testam.Options{RoutePrefix: "/am"})
	post(t, s, `[{"labels":{"alertname":"B","x":"1"}},{"labels":{"alertname":"A","x":"2"},"annotations":{"summary":"s"}}]`)
	if got := s.Alerts(); len(got) != 2 || got[0].Labels["alertname"] != "A" || got[0].Annotations["summary"] != "s" {
		t.Errorf("got %+v", got)
	}
	if got := s.Alerts("x", "1"); len(got) != 1 || got[0].Labels["alertname"] != "B" {
		t.Errorf("got %+v", got)
	}
	was := s.URL()
	s.Restart()
	if got := s.Alerts(); len(got) != 0 || s.URL() != was {
		t.Errorf("after the restart at %s (was %s): %+v", s.URL(), was, got)
	}
}
