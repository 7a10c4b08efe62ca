package targets

import (
	"context"
	"sync"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/source"
)

// releasingFor is how long an execution explains the end of its lock: the watch reports
// that at once, and a sweep that was on its way with the next one.
const releasingFor = 5 * time.Minute

// Executions knows which requests delete which locks, so that the findings on them say by
// whom they were released. It is safe for concurrent use.
type Executions struct {
	mu    sync.Mutex
	locks map[lockPlace]execution
}

type lockPlace struct {
	target string
	db     int
	key    string
}

type execution struct {
	request string
	at      time.Time
}

func evidencedLock(r locksteward.Request) lockPlace {
	return lockPlace{r.Evidence.Target, r.Evidence.DB, r.Evidence.Key}
}

// begin notes an execution before it is sent, since its effect may be seen before its
// answer.
func (l *Executions) begin(r locksteward.Request, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.locks == nil {
		l.locks = map[lockPlace]execution{}
	}
	for at, e := range l.locks {
		if now.Sub(e.at) > releasingFor {
			delete(l.locks, at)
		}
	}
	l.locks[evidencedLock(r)] = execution{r.ID, now}
}

// end notes that an execution did not release its lock.
func (l *Executions) end(r locksteward.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.locks[evidencedLock(r)].request == r.ID {
		delete(l.locks, evidencedLock(r))
	}
}

// explain completes the resolutions of findings on locks that requests released.
func (l *Executions) explain(transitions []locksteward.Transition, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range transitions {
		f := &transitions[i].Finding
		e, known := l.locks[lockPlace{f.Target, f.DB, f.Key}]
		// A finding that began later is about the next hold of the key.
		if known && now.Sub(e.at) <= releasingFor && !f.Since.After(e.at) && rules.MayBeReleased(*f) {
			f.Resolution = rules.ReleasedBy(e.request)
		}
	}
}

// Trace returns a releaser whose executions are noted.
func (l *Executions) Trace(r source.Releaser) source.Releaser { return tracedReleaser{r, l} }

type tracedReleaser struct {
	source.Releaser
	executions *Executions
}

// Release notes the execution and passes it on.
func (t tracedReleaser) Release(ctx context.Context, r locksteward.Request) (source.Outcome, error) {
	t.executions.begin(r, time.Now())
	outcome, err := t.Releaser.Release(ctx, r)
	if err == nil && outcome.State != locksteward.RequestReleased {
		t.executions.end(r)
	}
	return outcome, err
}
