package testagent_test

import (
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/locksteward/locksteward/internal/testkit/testagent"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

func TestMain(m *testing.M) {
	testredis.Hush()
	if is, code := testagent.Child(); is {
		os.Exit(code)
	}
	goleak.VerifyTestMain(testredis.Settled{M: m})
}

const configuration = `
targets: [{name: main, url: 'redis://127.0.0.1:1'}]
metrics: {listen: '127.0.0.1:0'}
console: {listen: '127.0.0.1:0'}
`

func config(t *testing.T, more string) string {
	return configuration + "store: {dsn: 'sqlite:" + t.TempDir() + "/store.db'}\n" + more
}

// An agent has two lives: it is found in each, not found while it is frozen or gone, and
// says of itself what it has.
func TestLives(t *testing.T) {
	t.Parallel()
	a := testagent.New(t, testagent.Options{Name: "agent", Config: config(t, "")})
	if at := a.Where(); at != (testagent.Place{}) {
		t.Errorf("before it lives: %+v", at)
	}
	a.Start()
	first, pid := a.Where(), a.PID()
	if first.Metrics == "" || !strings.HasPrefix(first.Console, "http://") || first.Life != 1 {
		t.Errorf("in its first life: %+v", first)
	}
	all, err := testagent.Scrape(t.Context(), first.Metrics)
	threads := 0.0
	for _, s := range all {
		if s.Name == "go_goroutines" && s.Series == s.Name {
			threads = s.Value
		}
	}
	if err != nil || threads < 1 {
		t.Errorf("%d samples, %v goroutines, %v", len(all), threads, err)
	}
	a.Freeze()
	if at := a.Where(); at != (testagent.Place{Life: 1}) {
		t.Errorf("while it is frozen: %+v", at)
	}
	a.Thaw()
	if at := a.Where(); at != first {
		t.Errorf("after that: %+v, was %+v", at, first)
	}
	if !a.Kill() || a.Kill() {
		t.Error("it was not alive, or is")
	}
	if at := a.Where(); at != (testagent.Place{Life: 1}) {
		t.Errorf("when it is gone: %+v", at)
	}
	a.Start()
	if at := a.Where(); at.Metrics == "" || at.Life != 2 || a.PID() == pid {
		t.Errorf("in its second life: %+v", at)
	}
	a.Signal(syscall.SIGTERM)
	if code := a.ExitCode(); code != 0 {
		t.Errorf("it ended with %d", code)
	}
	if log := a.Tail(); strings.Count(log, "agent started") != 2 || strings.Count(log, "agent stops") != 1 {
		t.Errorf("its log: %s", log)
	}
}

// One that is frozen is gone at the end of the test all the same, and by a way of its
// own: it is asked to end.
func TestFrozenIsGoneAtTheEnd(t *testing.T) {
	t.Parallel()
	var a *testagent.Agent
	t.Run("frozen", func(t *testing.T) {
		a = testagent.New(t, testagent.Options{Name: "agent", Config: config(t, "")})
		a.Start()
		a.Freeze()
	})
	select {
	case <-a.Done():
	default:
		t.Fatal("it is there")
	}
	if code := a.ExitCode(); code != 0 {
		t.Errorf("it ended with %d", code)
	}
}

// A configuration that no agent can use ends it with 1, and the log says why.
func TestWrongConfiguration(t *testing.T) {
	t.Parallel()
	a := testagent.New(t, testagent.Options{Name: "agent", Config: "targets: 7\n"})
	a.Begin()
	if code := a.ExitCode(); code != 1 || !strings.Contains(a.Tail(), "targets") {
		t.Errorf("it ended with %d: %s", code, a.Tail())
	}
}

// An ear hears a message, is away, and hears the next one at the same address; what
// comes twice is log once.
func TestEar(t *testing.T) {
	t.Parallel()
	log := testagent.NewAlertLog("ttl/none")
	e := testagent.NewEar(t, func(w http.ResponseWriter, _ *http.Request, m testagent.Message) {
		log.Take(m)
		w.WriteHeader(http.StatusTeapot)
	})
	post := func(id, status string) error {
		body := `{"id":"` + id + `","findings":[{"rule":"ttl/none","target":"main","key":"a","status":"` + status + `"},{"rule":"x","target":"main","key":"a"}]}`
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Webhook-Id", id)
		r.Close = true
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusTeapot {
			t.Errorf("answered %s", resp.Status)
		}
		return resp.Body.Close()
	}
	notified, news := log.Notified("main a", "firing")
	if err := post("1", "firing"); notified || err != nil {
		t.Fatal(err)
	}
	<-news
	e.Down()
	if err := post("2", "resolved"); err == nil {
		t.Error("it hears while it is away")
	}
	e.Up()
	for range 2 {
		if err := post("2", "resolved"); err != nil {
			t.Fatal(err)
		}
	}
	if all := strings.Join(log.Of("main a"), " "); all != "firing resolved" {
		t.Errorf("log %s", all)
	}
	if n, copies := log.Count(); n != 2 || copies != 1 {
		t.Errorf("%d messages, %d again", n, copies)
	}
}
