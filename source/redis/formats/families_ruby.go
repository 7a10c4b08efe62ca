package formats

import (
	"strconv"
	"strings"
	"time"
)

// rubyFamilies are the lock libraries of Ruby.
var rubyFamilies = []*family{
	familySidekiqUniqueV9,
	familySidekiqUniqueV8,
	familyRedisMutex,
	familyActiveJobUniqueness,
	familyRubyRedisSemaphore,
	familyResqueScheduler,
	familyGitLabLease,
	familyDiscourseMutex,
	familyRedlockRB,
}

// epochOf reads seconds since 1970 with or without a fraction, as Ruby's
// Time#to_f and Lua write them. fine says that the fraction goes below the
// millisecond, so that two acquisitions do not write the same text.
func epochOf(text string) (at time.Time, fine, ok bool) {
	whole, fraction, has := strings.Cut(text, ".")
	if len(whole) != 10 || !isDigits(whole) || has && (!isDigits(fraction) || len(fraction) > 17) {
		return time.Time{}, false, false
	}
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return time.Time{}, false, false
	}
	at = time.Unix(seconds, 0).UTC()
	if at.Before(firstTime) || !at.Before(lastTime) {
		return time.Time{}, false, false
	}
	if has {
		nanos, err := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
		if err != nil {
			return time.Time{}, false, false
		}
		at = at.Add(time.Duration(nanos))
	}
	return at, len(fraction) >= 4, true
}

// refuseSome refuses to release a key that several hold at once: removing it
// would throw out all of them, and which one is dead a release cannot say.
func (p plan) refuseSome(held int, what string) error {
	return p.refuse("%d %s are held in this one key, and removing it would take all of them", held, what)
}
