package lockcheck

import (
	"cmp"
	"fmt"
	"slices"
)

// Overlaps returns the holds that began for their holder while another had the
// same lock by its own lights: from the return of its acquire to the end of its
// lease, its release or its loss, whichever came first.
func Overlaps(h History) []Violation {
	var found []Violation
	byLock(h.Holds, func(h Hold) string { return h.Lock },
		func(a, b Hold) int { return cmp.Compare(a.Acquired, b.Acquired) },
		func(lock string, holds []Hold) {
			longest := holds[0]
			for _, next := range holds[1:] {
				if next.Acquired < longest.End() && next.Acquired < next.End() {
					found = append(found, Violation{
						"holder view", lock,
						fmt.Sprintf("%s began %dus before the end of %s", next, (longest.End()-next.Acquired)/1000, longest),
					})
				}
				if next.End() > longest.End() {
					longest = next
				}
			}
		})
	return found
}

// Losses returns the holds that their holder found lost before the end of the
// lease. Where nobody dropped locks there must be none.
func Losses(h History) []Violation {
	var found []Violation
	for _, one := range h.Holds {
		if one.LossSeen != 0 && one.LossSeen < one.Until {
			found = append(found, Violation{
				"losses", one.Lock,
				fmt.Sprintf("%s was lost %dus before the end of its lease", one, (one.Until-one.LossSeen)/1000),
			})
		}
	}
	return found
}

// Fences returns the acquisitions whose fence is not larger than that of each
// acquisition of the same lock that had returned when they were called, and
// those that share a fence.
func Fences(h History) []Violation {
	var found []Violation
	byLock(h.Holds, func(h Hold) string { return h.Lock },
		func(a, b Hold) int { return cmp.Compare(a.Invoked, b.Invoked) },
		func(lock string, called []Hold) {
			returned := slices.Clone(called)
			slices.SortFunc(returned, func(a, b Hold) int { return cmp.Compare(a.Acquired, b.Acquired) })
			owner := make(map[int64]Hold, len(called))
			var top Hold // of those that had returned
			for _, next := range called {
				for len(returned) > 0 && returned[0].Acquired < next.Invoked {
					if returned[0].Fence > top.Fence {
						top = returned[0]
					}
					returned = returned[1:]
				}
				if next.Fence <= top.Fence {
					found = append(found, Violation{"fence order", lock, fmt.Sprintf("%s came after %s", next, top)})
				}
				if other, taken := owner[next.Fence]; taken {
					found = append(found, Violation{"fence order", lock, fmt.Sprintf("%s and %s share a fence", next, other)})
				}
				if next.Fence <= 0 {
					found = append(found, Violation{"fence order", lock, fmt.Sprintf("%s has none", next)})
				}
				owner[next.Fence] = next
			}
		})
	return found
}

// Store returns the writes that a store accepted after one with a larger fence,
// by its own order and by the clock, and those that it rejected without having
// seen a larger one. Give it [History.Fenced], which must have none, or
// [History.Unfenced], to see what the lock alone did not prevent.
func Store(writes []Write) []Violation {
	var found []Violation
	accepted := make([]Write, 0, len(writes))
	for _, w := range writes {
		switch w.Outcome {
		case Accepted:
			accepted = append(accepted, w)
		case Rejected:
			if w.Stored <= w.Fence {
				found = append(found, Violation{"store", w.Lock, fmt.Sprintf("%s rejected for a fence of %d", w, w.Stored)})
			}
		}
	}
	lock := func(w Write) string { return w.Lock }
	byLock(accepted, lock, func(a, b Write) int { return cmp.Compare(a.Seq, b.Seq) },
		func(lock string, writes []Write) {
			top := writes[0]
			for i, next := range writes[1:] {
				if next.Seq == writes[i].Seq {
					found = append(found, Violation{"store", lock, fmt.Sprintf("%s and %s share a number", next, writes[i])})
				}
				if next.Fence < top.Fence {
					found = append(found, Violation{"store", lock, fmt.Sprintf("%s accepted after %s", next, top)})
				} else {
					top = next
				}
			}
		})
	byLock(accepted, lock, func(a, b Write) int { return cmp.Compare(a.Called, b.Called) },
		func(lock string, called []Write) {
			done := slices.Clone(called)
			slices.SortFunc(done, func(a, b Write) int { return cmp.Compare(a.Done, b.Done) })
			var top Write
			for _, next := range called {
				for len(done) > 0 && done[0].Done < next.Called {
					if done[0].Fence > top.Fence {
						top = done[0]
					}
					done = done[1:]
				}
				if next.Fence < top.Fence && next.Seq > top.Seq {
					continue // Reported above, by the store's own order.
				}
				if next.Fence < top.Fence {
					found = append(found, Violation{"store", lock, fmt.Sprintf("%s was sent when %s was done", next, top)})
				}
			}
		})
	return found
}
