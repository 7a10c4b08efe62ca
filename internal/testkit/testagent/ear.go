package testagent

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward/alert"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// portTimeout is how long an address may be taken when an ear wants it again.
const portTimeout = 90 * time.Second

// Message is one request that came in full.
type Message struct {
	alert.Payload
	At   time.Time
	Body []byte
}

// Ear is a webhook receiver on loopback that can be away.
type Ear struct {
	URL  string
	t    testing.TB
	addr string
	take func(w http.ResponseWriter, r *http.Request, m Message)

	mu     sync.Mutex
	server *httptest.Server
}

// NewEar opens a receiver that is gone at the end of the test. take gets each message,
// several at once, and answers it; without a word of it the answer is 200.
func NewEar(t testing.TB, take func(w http.ResponseWriter, r *http.Request, m Message)) *Ear {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &Ear{t: t, addr: l.Addr().String(), take: take}
	e.URL = "http://" + e.addr + "/hook"
	e.serve(l)
	t.Cleanup(e.Down)
	return e
}

func (e *Ear) serve(l net.Listener) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(e.hear))
	_ = server.Listener.Close()
	server.Listener = l
	server.Start()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.server = server
}

func (e *Ear) hear(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return // the agent was killed
	}
	m := Message{At: time.Now(), Body: raw}
	id := r.Header.Get(alert.HeaderID)
	if err := json.Unmarshal(raw, &m.Payload); err != nil || m.ID != id {
		e.t.Errorf("message %q: %v: %s", id, err, raw)
	}
	e.take(w, r, m)
}

// Down has connections refused and ends those that there are.
func (e *Ear) Down() {
	e.mu.Lock()
	server := e.server
	e.server = nil
	e.mu.Unlock()
	if server != nil {
		_ = server.Listener.Close()
		server.CloseClientConnections()
		server.Close()
	}
}

// Up takes connections again, at the same address.
func (e *Ear) Up() {
	e.t.Helper()
	var l net.Listener
	testredis.Eventually(e.t, portTimeout, func() bool {
		var err error
		l, err = net.Listen("tcp", e.addr)
		return err == nil
	}, "the port of the receiver is taken")
	e.serve(l)
}
