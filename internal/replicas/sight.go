package replicas

import "time"

const (
	// blindAfter and seesAfter are how many attempts in a row a target must be out of
	// reach, or within it, until it counts as that.
	blindAfter, seesAfter = 2, 2
	// lookEvery is from one look at a target to the next, retryAfter from one that failed;
	// one that took longer is followed at once.
	lookEvery, retryAfter = time.Second, 500 * time.Millisecond
	// calmAfter is after how many looks with the same result one comes only every
	// lookSlowly, for replicas that do not work on the target: each of them connects.
	calmAfter  = 10
	lookSlowly = 5 * time.Second
)

// sight is what one replica knows of its own way to a target.
type sight struct {
	failed, reached int  // attempts in a row
	blind           bool // out of reach
	// heard is since when another replica says that it reaches the target; zero where
	// none does.
	heard time.Time
	// sure says that the target was out of reach in an attempt that began after that:
	// of a server that was down and is back the others may hear first.
	sure bool
}

// note takes in an attempt that began at began, and why it failed; "" if it did not.
func (s *sight) note(why string, began time.Time) {
	if why == "" {
		s.failed, s.reached, s.sure = 0, s.reached+1, false
		s.blind = s.blind && s.reached < seesAfter
		return
	}
	s.failed, s.reached = s.failed+1, 0
	s.blind = s.blind || s.failed >= blindAfter
	s.sure = s.blind && !s.heard.IsZero() && !began.Before(s.heard)
}

// hear takes in at now whether another replica says that it reaches the target, and
// returns whether that is to be looked at once more.
func (s *sight) hear(another bool, now time.Time) bool {
	switch {
	case !another:
		s.heard, s.sure = time.Time{}, false
	case s.heard.IsZero():
		s.heard = now
		return s.blind
	}
	return false
}

// sees says that the target is within reach.
func (s *sight) sees() bool { return !s.blind && s.reached > 0 }

// pause is from the begin of this look to that of the next; works says that this replica works on the target.
func (s *sight) pause(works bool) time.Duration {
	switch {
	case !works && max(s.failed, s.reached) >= calmAfter:
		return lookSlowly
	case s.failed > 0 && s.failed < calmAfter:
		return retryAfter
	default:
		return lookEvery
	}
}
