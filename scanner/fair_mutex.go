package scanner

// fairMutex is a mutex that goes to those who wait in the order in which they came: a
// channel with room for one hands its place to the sender that waits longest. A
// sync.Mutex would mostly go to the goroutine that has just unlocked it.
type fairMutex chan struct{}

func newFairMutex() fairMutex { return make(fairMutex, 1) }

func (m fairMutex) Lock() { m <- struct{}{} }

func (m fairMutex) Unlock() { <-m }

// yield lets those go first who wait now.
func (m fairMutex) yield() {
	m.Unlock()
	m.Lock()
}
