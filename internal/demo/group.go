package demo

import (
	"context"
	"fmt"
	"strings"
	"sync"
)

// group runs goroutines of which the first that fails ends all.
type group struct {
	ctx  context.Context
	end  context.CancelCauseFunc
	work sync.WaitGroup
}

func newGroup(ctx context.Context) *group {
	ctx, end := context.WithCancelCause(ctx)
	return &group{ctx: ctx, end: end}
}

// run starts f under a name for its error.
func (g *group) run(name string, f func(ctx context.Context) error) {
	g.work.Go(func() {
		if err := f(g.ctx); err != nil {
			g.end(fmt.Errorf("%s: %w", name, err))
		}
	})
}

// stop ends all and returns when they ended.
func (g *group) stop() {
	g.end(nil)
	g.work.Wait()
}

// tail keeps the end of what is written to it. It is safe for concurrent use.
type tail struct {
	mu    sync.Mutex
	bytes []byte
}

// tailBytes is how much of a log may be worth showing.
const tailBytes = 8 << 10

// Write keeps b; it never fails.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bytes = append(t.bytes, b...)
	if over := len(t.bytes) - tailBytes; over > 0 {
		t.bytes = append(t.bytes[:0], t.bytes[over:]...)
	}
	return len(b), nil
}

// String returns the last whole lines.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimSpace(string(t.bytes))
	if len(t.bytes) == tailBytes {
		_, text, _ = strings.Cut(text, "\n")
	}
	return text
}
