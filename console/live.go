package console

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/users"
)

// Pages follow what they show by a stream of events (GET /live), each of which
// says no more than "something changed": the page is then fetched again as it is.
// So the page shows the same with and without script.

const (
	// liveEvery is the shortest time between two change events of a stream.
	liveEvery = time.Second
	// liveBeat is how often a stream hears of us at least, and who listens is asked
	// for again: a session that ended gets no more events.
	liveBeat = 15 * time.Second
	// liveWrite bounds one write to a listener that does not read.
	liveWrite = 10 * time.Second
	// Bounds of streams. A browser opens one for each visible page.
	maxStreams         = 256
	maxStreamsOfPerson = 16
)

// streams counts open streams, and the version of the data that they were sent.
type streams struct {
	version atomic.Uint64 // grows with each change
	every   time.Duration // liveEvery but for tests
	beat    time.Duration // liveBeat but for tests

	mu     sync.Mutex
	open   int
	byName map[string]int
	closed bool
	done   chan struct{}
}

func newStreams() *streams {
	return &streams{every: liveEvery, beat: liveBeat, byName: map[string]int{}, done: make(chan struct{})}
}

// Touch says that something that pages show changed. It is cheap, never blocks,
// and may be called from anywhere.
func (s *Server) Touch() { s.streams.version.Add(1) }

// errTooManyStreams is why a page has to look by itself now and then.
var errTooManyStreams = api.NewProblem(api.CodeUnavailable, "too many pages are open: this one reloads periodically instead")

// begin counts a listener; end is to be called when it goes.
func (t *streams) begin(name string) (end func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.open >= maxStreams || t.byName[name] >= maxStreamsOfPerson {
		return nil, errTooManyStreams
	}
	t.open++
	t.byName[name]++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.open--
		if t.byName[name]--; t.byName[name] == 0 {
			delete(t.byName, name)
		}
	}, nil
}

// close ends all streams: they would keep the server from stopping.
func (t *streams) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.closed = true
		close(t.done)
	}
}

// live answers GET /live until the listener goes, their session ends, or the
// server stops.
func (s *Server) live(w http.ResponseWriter, r *http.Request, who users.User) error {
	if err := parseQuery(r).err(); err != nil {
		return err
	}
	end, err := s.streams.begin(who.Name)
	if err != nil {
		return err
	}
	defer end()
	out := stream{w: w, rc: http.NewResponseController(w)}
	// The server's own bounds are for answers that end.
	if err := out.rc.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	sent := s.streams.version.Load()
	if out.send("retry: 3000\n\n") != nil {
		return nil
	}
	tick := time.NewTicker(s.streams.every)
	defer tick.Stop()
	lastEvent := time.Now()
	for {
		select {
		case <-r.Context().Done():
			return nil
		case <-s.streams.done:
			return nil
		case <-tick.C:
		}
		if time.Since(lastEvent) >= s.streams.beat {
			if !s.stillSignedIn(r, who) || out.send("event: beat\ndata: \n\n") != nil {
				return nil
			}
			lastEvent = time.Now()
		}
		if now := s.streams.version.Load(); now != sent {
			if out.send("event: change\ndata: \n\n") != nil {
				return nil
			}
			sent = now
		}
	}
}

// stillSignedIn says that who listens may still look.
func (s *Server) stillSignedIn(r *http.Request, who users.User) bool {
	if s.authenticator.Open() {
		return who.Name == ""
	}
	now, err := s.authenticator.Identify(r)
	return err == nil && now.User.Name == who.Name && now.User.Can(users.VerbView)
}

// stream writes events to one listener.
type stream struct {
	w  io.Writer
	rc *http.ResponseController
}

func (o stream) send(text string) error {
	if err := o.rc.SetWriteDeadline(time.Now().Add(liveWrite)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := io.WriteString(o.w, text); err != nil {
		return err
	}
	return o.rc.Flush()
}
