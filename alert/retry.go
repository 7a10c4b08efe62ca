package alert

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	backoffBase = time.Second
	backoffCap  = 5 * time.Minute
	// maxRetryAfter bounds what a receiver can ask for: an absurd value must not
	// park its alerts for a day.
	maxRetryAfter = time.Hour
)

// backoff is the wait after the given number of failed attempts (from 1):
// uniform in (0, min(cap, base·2^(n-1))], which spreads many agents that lost
// the same receiver better than any fixed part would.
func backoff(attempts int) time.Duration { return backoffTo(backoffCap, attempts) }

// backoffTo is backoff with another cap.
func backoffTo(limit time.Duration, attempts int) time.Duration {
	if shift := attempts - 1; shift < 16 {
		limit = min(limit, backoffBase<<shift)
	}
	return 1 + rand.N(limit)
}

// retryAfter reads the header: seconds or an HTTP date.
func retryAfter(text string, now time.Time) time.Duration {
	text = strings.TrimSpace(text)
	if text == "" {
		return 0
	}
	if s, err := strconv.ParseInt(text, 10, 64); err == nil {
		if s > int64(maxRetryAfter/time.Second) {
			return maxRetryAfter
		}
		return max(0, time.Duration(s)*time.Second)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(0, at.Sub(now)), maxRetryAfter)
	}
	return 0
}
