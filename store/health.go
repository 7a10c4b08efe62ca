package store

import (
	"errors"
	"sync"
)

// ErrorKinds are the kinds by which errors of the database are counted, in the order
// of their names. "unsynced" is a write that the disk did not confirm.
var ErrorKinds = []string{"away", "damaged", "full", "locked", "read_only", "unsynced"}

// Health is the state of the store since the process started.
type Health struct {
	// Damaged is the first damage that was found, "" if none was.
	Damaged string
	// NeedsRepair says why nothing is written any more since an fsync failed, and what to
	// do; "" if none did. It lasts until the process ends.
	NeedsRepair string
	// Errors is how many calls failed, by the kinds of [ErrorKinds]. Calls that were
	// refused because the cause is known are not counted again.
	Errors map[string]int64
}

// health collects errors for [Store.Health].
type health struct {
	mu  sync.Mutex // guards now
	now Health
}

// Health returns the state of the store since the process started.
func (s *Store) Health() Health {
	h := &s.memory.health
	h.mu.Lock()
	defer h.mu.Unlock()
	out := h.now
	out.Errors = make(map[string]int64, len(ErrorKinds))
	for _, kind := range ErrorKinds {
		out.Errors[kind] = h.now.Errors[kind]
	}
	if e := s.memory.needsRepair.Load(); e != nil {
		out.NeedsRepair = e.Error()
	}
	return out
}

// count counts an error of the database.
func (h *health) count(e *Error) {
	kind := ""
	switch {
	case errors.Is(e.Kind, ErrNeedsRepair):
		kind = "unsynced"
	case errors.Is(e.Kind, ErrAway):
		kind = "away"
	case errors.Is(e.Kind, ErrDamaged):
		kind = "damaged"
	case errors.Is(e.Kind, ErrFull):
		kind = "full"
	case errors.Is(e.Kind, ErrBusy):
		kind = "locked"
	case errors.Is(e.Kind, ErrReadOnly):
		kind = "read_only"
	default:
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now.Errors == nil {
		h.now.Errors = map[string]int64{}
	}
	h.now.Errors[kind]++
	if kind == "damaged" && h.now.Damaged == "" {
		h.now.Damaged = e.Error()
	}
}
