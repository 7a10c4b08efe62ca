package release

import (
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
)

// Many releases at once need one approval more: many_per_minute of a class. Whether a
// request is beyond that is decided when it is asked for, and frozen. What counts are
// the locks of the class that are asked for and open, whenever that was, and those
// released within the minute, all from the store. So asking slowly and approving at once
// gains nothing: of requests that are not beyond it, no more than that many are carried
// out in any minute. For take those, of any minute, and of them the one that was asked
// for last: each other one was open then, or carried out less than a minute before, so
// that it was counted.

// manyWindow is what many_per_minute is for.
const manyWindow = time.Minute

// countIn marks those of the requests, asked for together, that are beyond
// many_per_minute of their class with the others. It counts in the transaction that
// writes them, or two that ask in the same moment would both be the last that may.
func (s *Service) countIn(asked []locksteward.Request, there recent) error {
	together := map[string]int{}
	for _, r := range asked {
		together[r.Evidence.Class]++
	}
	at := s.now()
	beyond := map[string]int{}
	for name, n := range together {
		c, err := s.policy(name)
		if err != nil {
			return err
		}
		most := c.ManyPerMinuteOrDefault()
		if n <= most {
			before, err := there(at.Add(-manyWindow), most+1-n, func(r locksteward.Request) bool {
				return r.Evidence.Class == name && r.Evidence.Act != locksteward.ActUndo && r.Evidence.Act != locksteward.ActLift &&
					!due(r, at) && !givesWay(r, asked)
			})
			if err != nil {
				return err
			}
			n += before
		}
		if n > most {
			beyond[name] = most
		}
	}
	for i := range asked {
		r := &asked[i]
		r.Evidence.BeyondPerMinute = beyond[r.Evidence.Class]
		r.EvidenceHash = EvidenceHash(r.Evidence)
	}
	return nil
}

// givesWay says whether an open request is about a lock that is asked for anew: one
// of the two will be open.
func givesWay(open locksteward.Request, asked []locksteward.Request) bool {
	if open.State.Final() {
		return false
	}
	for _, r := range asked {
		if e := r.Evidence; open.Evidence.Target == e.Target && open.Evidence.DB == e.DB && open.Evidence.Key == e.Key {
			return true
		}
	}
	return false
}

// beyondSentence says why a request needs one approval more; "" if it does not.
func beyondSentence(e locksteward.Evidence) string {
	if e.BeyondPerMinute == 0 {
		return ""
	}
	return fmt.Sprintf("Many releases: with this one, more than %d of class %q were asked for, or released within a minute, so it needs the approval of one person more (many_per_minute).",
		e.BeyondPerMinute, e.Class)
}
