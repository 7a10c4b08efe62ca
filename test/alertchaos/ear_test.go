package alertchaos_test

import (
	"crypto/sha256"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testagent"
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
	*testagent.Ear
	t    *testing.T
	name string

	// arrived gets a token when a request came in, before it is answered.
	arrived chan struct{}

	mu       sync.Mutex
	mood     mood
	received []delivery
}

// delivery is one request that came in full.
type delivery struct {
	id       string
	sum      [sha256.Size]byte // of its bytes
	accepted bool
	reported []reported
}

// reported is one transition that a request reports.
type reported struct{ event, fingerprint, rule, key, status string }

func newEar(t *testing.T, name string) *ear {
	t.Helper()
	e := &ear{t: t, name: name, arrived: make(chan struct{}, 1)}
	e.Ear = testagent.NewEar(t, e.take)
	return e
}

// is changes the mood.
func (e *ear) is(m mood) {
	e.mu.Lock()
	was := e.mood
	e.mood = m
	e.mu.Unlock()
	switch {
	case m == refusing && was != refusing:
		e.Down()
	case m != refusing && was == refusing:
		e.Up()
	}
}

func (e *ear) take(w http.ResponseWriter, r *http.Request, msg testagent.Message) {
	d := delivery{id: msg.ID, sum: sha256.Sum256(msg.Body)}
	if msg.Omitted > 0 {
		e.t.Errorf("message %q leaves %d out: %s", d.id, msg.Omitted, msg.Body)
	}
	for _, f := range msg.Findings {
		d.reported = append(d.reported, reported{f.EventID, f.Fingerprint, f.Rule, f.Key.Key, f.Status})
	}
	select {
	case e.arrived <- struct{}{}:
	default:
	}
	e.mu.Lock()
	m := e.mood
	d.accepted = m == well
	e.received = append(e.received, d)
	e.mu.Unlock()
	switch m {
	case failing, refusing: // it came just before the connections were ended, and is not taken
		w.WriteHeader(http.StatusInternalServerError)
	case tooMuch:
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	case hanging:
		<-r.Context().Done()
	default:
	}
}

// got are the requests so far.
func (e *ear) got() []delivery {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]delivery(nil), e.received...)
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
