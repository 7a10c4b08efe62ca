package targets

// turn is a semaphore of one: sweeps, changes and rechecks of a target are judged one after the other,
// in the order in which they were read, and what follows from one is in the store before the next is judged. That takes as
// long as the store does, so it is no mutex: nothing that shows the target waits for it, and nothing that runs in a
// transaction of the store may take it.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take waits for the turn of the others to end, and begins one.
func (t turn) take() (end func()) {
	t <- struct{}{}
	return t.end
}

func (t turn) end() { <-t }
