package rules

import (
	"math"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
)

// TestForeignNumbersAreNoVerdict: metadata can be written by anybody; intervals
// and times that overflow must not make a holder late.
func TestForeignNumbersAreNoVerdict(t *testing.T) {
	t.Parallel()
	far := time.UnixMilli(math.MaxInt64 / 2)
	for name, change := range map[string]func(*locksteward.Lock){
		"interval": func(l *locksteward.Lock) {
			l.Claim = &locksteward.Claim{Acquired: t0, RenewEvery: math.MaxInt64}
		},
		"renewed in the future": func(l *locksteward.Lock) {
			l.Claim = &locksteward.Claim{Acquired: t0, Renewed: far, RenewEvery: time.Second}
		},
		"acquired in the future, held at most for ever": func(l *locksteward.Lock) {
			l.Claim = &locksteward.Claim{Acquired: far, RenewEvery: time.Second, MaxHold: math.MaxInt64}
		},
		"nothing said": func(l *locksteward.Lock) {
			l.Claim = &locksteward.Claim{RenewEvery: time.Second}
		},
		"learned interval": func(l *locksteward.Lock) {
			l.History.Renewals, l.History.LastRenewal, l.History.RenewEvery = 2, t0, math.MaxInt64
		},
		"expiry in the far future": func(l *locksteward.Lock) {
			l.Dialect, l.ExpireAt = "redisson", math.MaxInt64
			l.History.Renewals, l.History.LastRenewal = 2, t0
		},
		"expiry in the past": func(l *locksteward.Lock) {
			l.Dialect, l.ExpireAt = "redisson", 1
			l.History.Renewals, l.History.LastRenewal = 2, t0
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := lockAt("a", after(time.Second), change)
			if r := judgeRenewal(&l, l.At); r.late() {
				t.Errorf("late by %s", r.overdue)
			}
		})
	}
}
