package alertchaos_test

import (
	"crypto/sha256"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward/alert"
	"github.com/locksteward/locksteward/internal/testredis"
)

// moods are how a receiver answers. The first is well.
type mood int

const (
	well mood = iota
	failing
	tooMuch
	hanging
	refusing
	moods
)

// ear is a webhook receiver that flaps.
type ear struct {
	t    *testing.T
	name string
	addr string

	// arrived gets a token when a request came in, before it is answered.
	arrived chan struct{}
	ending  chan struct{}

	mu      sync.Mutex
	mood    mood
	server  *http.Server
	serving sync.WaitGroup
	heard   []delivery
}

// delivery is one request that came in full.
type delivery struct {
	id       string
	sum      [sha256.Size]byte // of its bytes
	accepted bool
	told     []told
}

// told is one transition that a request tells of.
type told struct{ event, fingerprint, rule, key, status string }

func newEar(t *testing.T, name string) *ear {
	t.Helper()
	e := &ear{t: t, name: name, arrived: make(chan struct{}, 1), ending: make(chan struct{})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e.addr = l.Addr().String()
	e.serve(l)
	t.Cleanup(func() {
		close(e.ending)
		e.close()
	})
	return e
}

func (e *ear) url() string { return "http://" + e.addr + "/hook" }

func (e *ear) serve(l net.Listener) {
	server := &http.Server{Handler: http.HandlerFunc(e.take), ReadHeaderTimeout: time.Minute}
	e.mu.Lock()
	e.server = server
	e.mu.Unlock()
	e.serving.Go(func() { _ = server.Serve(l) })
}

func (e *ear) close() {
	e.mu.Lock()
	server := e.server
	e.server = nil
	e.mu.Unlock()
	if server != nil {
		_ = server.Close()
	}
	e.serving.Wait()
}

// is changes the mood.
func (e *ear) is(m mood) {
	e.mu.Lock()
	was := e.mood
	e.mood = m
	e.mu.Unlock()
	switch {
	case m == refusing && was != refusing:
		e.close()
	case m != refusing && was == refusing:
		var l net.Listener
		testredis.Eventually(e.t, within, func() bool {
			var err error
			l, err = net.Listen("tcp", e.addr)
			return err == nil
		}, "the port of the receiver is taken")
		e.serve(l)
	}
}

func (e *ear) take(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return // the agent was killed
	}
	d := delivery{id: r.Header.Get(alert.HeaderID), sum: sha256.Sum256(raw)}
	var p alert.Payload
	if err := json.Unmarshal(raw, &p); err != nil || p.ID != d.id || p.Omitted > 0 {
		e.t.Errorf("message %q: %v: %s", d.id, err, raw)
	}
	for _, f := range p.Findings {
		d.told = append(d.told, told{f.EventID, f.Fingerprint, f.Rule, f.Key.Key, f.Status})
	}
	select {
	case e.arrived <- struct{}{}:
	default:
	}
	e.mu.Lock()
	m := e.mood
	d.accepted = m == well
	e.heard = append(e.heard, d)
	e.mu.Unlock()
	switch m {
	case failing:
		w.WriteHeader(http.StatusInternalServerError)
	case tooMuch:
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	case hanging:
		select {
		case <-r.Context().Done():
		case <-e.ending:
		}
	default:
	}
}

// got are the requests so far.
func (e *ear) got() []delivery {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]delivery(nil), e.heard...)
}

// flap changes the mood at random until stop, and leaves the receiver well.
func (e *ear) flap(rng *rand.Rand, stop <-chan struct{}) {
	defer e.is(well)
	for {
		m := well
		if rng.IntN(2) == 0 {
			m = mood(rng.IntN(int(moods)))
		}
		e.is(m)
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(50+rng.IntN(600)) * time.Millisecond):
		}
	}
}
