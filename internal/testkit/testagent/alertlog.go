package testagent

import (
	"slices"
	"sync"
)

// AlertLog collects the notifications about the locks that break one rule. A message that comes
// again is counted and changes nothing.
type AlertLog struct {
	rule string

	mu     sync.Mutex
	news   chan struct{}
	ids    map[string]bool
	of     map[string][]string // by target and key: the statuses, in the order they came
	copies int
}

// NewAlertLog remembers nothing yet.
func NewAlertLog(rule string) *AlertLog {
	return &AlertLog{rule: rule, news: make(chan struct{}), ids: map[string]bool{}, of: map[string][]string{}}
}

// Take keeps a message, and says whether it is new.
func (t *AlertLog) Take(m Message) bool {
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

// Notified says whether a notification of a status came about a lock, named by its target and key with a
// blank between them, and what to wait for if not.
func (t *AlertLog) Notified(lock, status string) (notified bool, news <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Contains(t.of[lock], status), t.news
}

// Of are the statuses of a lock that notifications named.
func (t *AlertLog) Of(lock string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.of[lock])
}

// Count is how many messages came, and how many of them again.
func (t *AlertLog) Count() (messages, copies int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.ids), t.copies
}
