package lock

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// session is a logical thread of work: what it holds it may take again, and whom it waits for can be seen from
// outside. A nil session holds nothing.
type session struct {
	id string

	mu    sync.Mutex
	held  []*hold // in the order in which they were taken; ended ones until their last release
	doors map[door]chan struct{}
}

// door is a lock of one client that a session takes; one call at a time goes through.
type door struct {
	c   *Client
	key string
}

type sessionKey struct{}

// WithSession returns a context whose acquires belong together, as those of one
// request or job do:
//
//   - A lock that the session holds is taken again at once (re-entrancy). Each
//     handle is released for itself; the last one frees the lock. Fence, id and
//     MaxHold stay those of the first.
//   - The metadata of a lock names the session and what else it held when it
//     took it, and so do the records of waiters: a cycle of sessions that wait
//     for each other, and locks taken in different orders, can be seen from
//     outside.
//
// Without it each acquire is a session of its own: who acquires what it holds
// waits for itself, and cycles stay invisible.
//
// The session ends with the last reference to the context. It may be used by
// several goroutines, but excludes them from each other as little as any
// re-entrant lock does. A context that has a session keeps it.
func WithSession(ctx context.Context) context.Context {
	if sessionOf(ctx) != nil {
		return ctx
	}
	return context.WithValue(ctx, sessionKey{}, &session{id: string(appendRandom(nil)), doors: map[door]chan struct{}{}})
}

func sessionOf(ctx context.Context) *session {
	s, _ := ctx.Value(sessionKey{}).(*session)
	return s
}

// enter lets one call at a time take key: a second one finds what the first has taken. The returned function lets
// the next one in.
func (s *session) enter(ctx context.Context, c *Client, key string) (leave func(), err error) {
	if s == nil {
		return func() {}, nil
	}
	d, mine := door{c, key}, make(chan struct{})
	for {
		s.mu.Lock()
		busy := s.doors[d]
		if busy == nil {
			s.doors[d] = mine
		}
		s.mu.Unlock()
		if busy == nil {
			return func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				delete(s.doors, d)
				close(mine)
			}, nil
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, fmt.Errorf("acquire lock %q: %w", key, why(ctx))
		case <-c.ctx.Done():
			return nil, fmt.Errorf("acquire lock %q: %w", key, ErrClosed)
		}
	}
}

// find returns the session's hold of key; nil if it has none.
func (s *session) find(c *Client, key string) *hold {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.held, func(h *hold) bool { return h.c == c && h.key == key })
	if i < 0 {
		return nil
	}
	return s.held[i]
}

func (s *session) add(h *hold) {
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.held = append(s.held, h)
	}
}

func (s *session) remove(h *hold) {
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.held = slices.DeleteFunc(s.held, func(o *hold) bool { return o == h })
	}
}

// maxHolding is how many other locks of its session a lock's metadata names: the last ones taken, of at most
// MaxMeta bytes.
const maxHolding = 32

// holding returns the other locks of c's deployment that the session holds, in the order in which it took them.
func (s *session) holding(c *Client, key string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []string
	size := 0
	for _, h := range slices.Backward(s.held) {
		if h.c != c || h.key == key || h.outcome() != nil {
			continue
		}
		size += len(h.key)
		if len(keys) == maxHolding || size > MaxMeta {
			break
		}
		keys = append(keys, h.key)
	}
	slices.Reverse(keys)
	return keys
}

// reenter takes a lock once more that the session holds. It asks the server, so that nobody goes on with a lock
// that is lost.
func (c *Client) reenter(ctx context.Context, h *hold, lease Lease) (*Handle, error) {
	again := &Handle{hold: h}
	if err := h.join(ctx, again, lease); err != nil {
		return nil, fmt.Errorf("acquire lock %q: %w", h.key, err)
	}
	if err := h.extend(ctx, h.ttl()); err != nil {
		h.part(again, err)
		return nil, fmt.Errorf("acquire lock %q again: %w", h.key, err)
	}
	return again, nil
}
