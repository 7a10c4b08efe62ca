package alert

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// rates are the rate limits of a service.
type rates struct {
	// perMinute and perSecond bound the notifications in any minute and in any second;
	// 0: no limit.
	perMinute, perSecond int
	// avoidPeaks says that the service throttles most at full and half hours, when
	// everybody's robots send: nothing is sent in their first seconds.
	avoidPeaks bool
}

// limiter keeps attempts below the rates of a service. An attempt in flight counts as
// sent now, and one that has ended from its end: it may have arrived as late as that,
// and the service counts arrivals.
type limiter struct {
	rates
	// spread permits a burst and spreads the others, so that a minute's notifications are
	// not used up in its first seconds.
	spread    *rate.Limiter
	peakDelay time.Duration // how long it waits after full and half hours

	mu       sync.Mutex  // guards what follows
	inFlight int         // attempts that have begun and not ended
	ended    []time.Time // when the last attempts ended, the oldest first; at most perMinute
}

// newLimiter returns nil for a receiver without a limit.
func newLimiter(r rates) *limiter {
	if r.perMinute <= 0 {
		return nil
	}
	burst := max(1, r.perMinute/5)
	l := &limiter{rates: r, spread: rate.NewLimiter(rate.Limit(float64(max(1, r.perMinute-burst))/60), burst)}
	if r.avoidPeaks {
		l.peakDelay = 2*time.Second + rand.N(6*time.Second) // others that avoid the peak come back at other times
	}
	return l
}

// free returns how many attempts may begin now, at most n; if none, wait is the time
// until one may, unless an attempt in flight ends first.
func (l *limiter) free(now time.Time, n int) (free int, wait time.Duration) {
	if l == nil {
		return n, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	tokens := l.spread.TokensAt(now)
	if tokens < 1 {
		wait = time.Duration((1-tokens)/float64(l.spread.Limit())*float64(time.Second)) + time.Millisecond
	}
	n = min(n, max(0, int(tokens)))
	room, until := l.room(now, l.perMinute, time.Minute)
	n, wait = min(n, room), max(wait, until)
	if l.perSecond > 0 {
		room, until = l.room(now, l.perSecond, time.Second)
		n, wait = min(n, room), max(wait, until)
	}
	if since := now.Sub(now.Truncate(30 * time.Minute)); since < l.peakDelay {
		return 0, max(wait, l.peakDelay-since)
	}
	return n, wait
}

// room returns how many more attempts fit into a window; if none, until is how long that
// is so. The caller holds l.mu.
func (l *limiter) room(now time.Time, most int, window time.Duration) (room int, until time.Duration) {
	if room = most - l.inFlight; room <= 0 {
		return 0, window
	}
	if i := len(l.ended) - room; i >= 0 {
		until = max(0, l.ended[i].Add(window).Sub(now))
	}
	for _, at := range slices.Backward(l.ended) {
		if now.Sub(at) >= window {
			break
		}
		room--
	}
	return max(0, room), until
}

// begin records that n attempts begin. It and end may be called on nil.
func (l *limiter) begin(now time.Time, n int) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spread.ReserveN(now, n)
	l.inFlight += n
}

// end records that an attempt has ended, however it went.
func (l *limiter) end(now time.Time) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight--
	l.ended = append(l.ended, now)
	if more := len(l.ended) - l.perMinute; more > 0 {
		l.ended = slices.Delete(l.ended, 0, more)
	}
}
