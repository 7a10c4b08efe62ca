package testagent

import (
	"slices"
	"sync"
)

// Told is what an ear was told of the locks that break one rule. A message that comes
// again is counted and changes nothing.
type Told struct {
	rule string

	mu     sync.Mutex
	news   chan struct{}
	ids    map[string]bool
	of     map[string][]string // by target and key: the statuses, in the order they came
	copies int
}

// NewTold remembers nothing yet.
func NewTold(rule string) *Told {
	return &Told{rule: rule, news: make(chan struct{}), ids: map[string]bool{}, of: map[string][]string{}}
}

// Take keeps a message, and says whether it is new.
func (t *Told) Take(m Message) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ids[m.ID] {
		t.copies++
		return false
	}
	t.ids[m.ID] = true
	for _, f := range m.Findings {
		if f.Rule == t.rule {
			lock := f.Target + " " + f.Key.Key
			t.of[lock] = append(t.of[lock], f.Status)
		}
	}
	close(t.news)
	t.news = make(chan struct{})
	return true
}

// Heard says whether a status was told of a lock, named by its target and key with a
// blank between them, and what to wait for if not.
func (t *Told) Heard(lock, status string) (heard bool, news <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Contains(t.of[lock], status), t.news
}

// Of are the statuses that were told of a lock.
func (t *Told) Of(lock string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.of[lock])
}

// Count is how many messages came, and how many of them again.
func (t *Told) Count() (messages, copies int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.ids), t.copies
}
