package store

import (
	"errors"
	"sync"
)

// ErrorKinds are the kinds by which errors of the database are counted, in the order
// of their names. "unsynced" is a commit that the disk did not confirm, "uncopied" a file
// that was written on after one, since no copy of it could take its place.
var ErrorKinds = []string{"away", "damaged", "full", "locked", "read_only", "uncopied", "unsynced"}

// Health is how the store has fared in this life of the process.
type Health struct {
	// Damaged is what is damaged, "" while nothing is known to be.
	Damaged string
	// Errors is how many calls failed, by the kinds of [ErrorKinds]; calls that were
	// refused since it is known what is wrong are not counted again.
	Errors map[string]int64
	// Reopened is how often the file was opened anew after a commit that the disk did
	// not confirm, found whole and, as a copy or the same file, written again.
	Reopened int64
	// Kept is why it was the same file at the last time, "" if a copy took its place.
	Kept string
	// Refused is why nothing is written now although it is read; nil if it is written.
	Refused error
}

// health collects it.
type health struct {
	mu  sync.Mutex
	now Health
}

// Health returns how the store has fared.
func (s *Store) Health() Health {
	h := &s.memory.health
	h.mu.Lock()
	defer h.mu.Unlock()
	out := h.now
	out.Errors = make(map[string]int64, len(ErrorKinds))
	for _, kind := range ErrorKinds {
		out.Errors[kind] = h.now.Errors[kind]
	}
	out.Refused = s.doubt.enter("write")
	return out
}

// count notes an error of the database.
func (h *health) count(e *Error) {
	kind := ""
	switch {
	case e.Unsure:
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

// reopened notes that the file was opened anew and is whole, and why no copy took its
// place; nil if one did.
func (h *health) reopened(kept error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now.Reopened++
	h.now.Kept = ""
	if kept == nil {
		return
	}
	h.now.Kept = kept.Error()
	if h.now.Errors == nil {
		h.now.Errors = map[string]int64{}
	}
	h.now.Errors["uncopied"]++
}
