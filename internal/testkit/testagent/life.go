package testagent

import (
	"io"
	"os/exec"
	"regexp"
	"sync"

	"github.com/locksteward/locksteward/internal/redisproc"
)

// started is what an agent says when it runs.
var started = regexp.MustCompile(`"agent started".*"metrics":"([^"]+)","console":"([^"]*)"`)

// life is one process of an agent.
type life struct {
	log   io.Writer
	cmd   *exec.Cmd
	child *redisproc.Child
	stdin io.Closer
	wall  *wall // of an agent that is clocked
	up    chan struct{}

	mu               sync.Mutex
	head             []byte // of what it wrote, until it is up
	isUp, gone       bool
	metrics, console string
}

// Write takes what the process logs.
func (l *life) Write(raw []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isUp {
		l.head = append(l.head, raw...) // a line may come in pieces
		if at := started.FindSubmatch(l.head); at != nil {
			l.isUp, l.head = true, nil
			if !l.gone {
				l.metrics, l.console = string(at[1]), string(at[2])
			}
			close(l.up)
		}
	}
	return l.log.Write(raw)
}

func (l *life) addresses() (metrics, console string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.metrics, l.console
}

// forget gives up its addresses, also those that it has yet to say.
func (l *life) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone, l.metrics, l.console = true, "", ""
}
