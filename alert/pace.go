package alert

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// rates are how fast a service takes messages.
type rates struct {
	// perMinute and perSecond are how many messages it takes in any minute and in any
	// second; 0: as many as come.
	perMinute, perSecond int
	// crowded says that it throttles most at full and half hours, when everybody's
	// robots speak: nothing is sent in their first seconds.
	crowded bool
}

// pace keeps what is sent below the rates of a service. An attempt that is under way
// counts as sent now, and one that is over from its end: a message may have arrived as
// late as that, and the service counts arrivals.
type pace struct {
	rates
	// spread lets some come at once and the others one by one, so that not all of a
	// minute's messages are gone in its first seconds.
	spread *rate.Limiter
	late   time.Duration // how long it keeps off full and half hours

	mu   sync.Mutex
	open int         // attempts under way
	over []time.Time // when the last attempts ended, the oldest first; at most perMinute
}

// newPace returns nil for a receiver that takes as many messages as come.
func newPace(r rates) *pace {
	if r.perMinute <= 0 {
		return nil
	}
	burst := max(1, r.perMinute/5)
	p := &pace{rates: r, spread: rate.NewLimiter(rate.Limit(float64(max(1, r.perMinute-burst))/60), burst)}
	if r.crowded {
		p.late = 2*time.Second + rand.N(6*time.Second) // others that keep off come back at other times
	}
	return p
}

// free is how many attempts may begin now, at most n; if none, wait is how long it is
// until one may, unless an end of what is under way comes first.
func (p *pace) free(now time.Time, n int) (free int, wait time.Duration) {
	if p == nil {
		return n, 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	tokens := p.spread.TokensAt(now)
	if tokens < 1 {
		wait = time.Duration((1-tokens)/float64(p.spread.Limit())*float64(time.Second)) + time.Millisecond
	}
	n = min(n, max(0, int(tokens)))
	left, until := p.left(now, p.perMinute, time.Minute)
	n, wait = min(n, left), max(wait, until)
	if p.perSecond > 0 {
		left, until = p.left(now, p.perSecond, time.Second)
		n, wait = min(n, left), max(wait, until)
	}
	if since := now.Sub(now.Truncate(30 * time.Minute)); since < p.late {
		return 0, max(wait, p.late-since)
	}
	return n, wait
}

// left is how many more attempts a window has room for; if for none, until is how long
// that is so.
func (p *pace) left(now time.Time, most int, in time.Duration) (left int, until time.Duration) {
	if left = most - p.open; left <= 0 {
		return 0, in
	}
	if i := len(p.over) - left; i >= 0 {
		until = max(0, p.over[i].Add(in).Sub(now))
	}
	for _, at := range slices.Backward(p.over) {
		if now.Sub(at) >= in {
			break
		}
		left--
	}
	return max(0, left), until
}

// began notes that n attempts begin.
func (p *pace) began(now time.Time, n int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spread.ReserveN(now, n)
	p.open += n
}

// ended notes that an attempt is over, however it went.
func (p *pace) ended(now time.Time) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
	p.over = append(p.over, now)
	if more := len(p.over) - p.perMinute; more > 0 {
		p.over = slices.Delete(p.over, 0, more)
	}
}
